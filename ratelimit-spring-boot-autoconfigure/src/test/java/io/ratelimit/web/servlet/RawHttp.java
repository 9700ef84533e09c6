package io.ratelimit.web.servlet;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/** HTTP over a plain socket. Requests are sent unchanged, while a client library would normalize or reject them. */
public record RawHttp(int port, String client) {

    private static final int TIMEOUT_MILLIS = 20_000;

    /** Returns a client of the same server with another address of this machine: any of 127.0.0.0/8. */
    public RawHttp from(String address) {
        return new RawHttp(port, address);
    }

    public Response get(String target, String... headers) {
        return request("GET", target, headers);
    }

    public Response post(String target, String... headers) {
        return request("POST", target, headers);
    }

    /** Sends a request without a body on a new connection. */
    public Response request(String method, String target, String... headers) {
        return send(text(method, target, headers));
    }

    /** Sends exactly the bytes of the text in ISO 8859-1, and reads one response to its end. */
    public Response send(String text) {
        try (Connection connection = open()) {
            connection.write(text);
            connection.socket.shutdownOutput();
            return connection.readToEnd();
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    public Connection open() {
        try {
            Socket socket = new Socket(InetAddress.getByName("127.0.0.1"), port, InetAddress.getByName(client), 0);
            socket.setSoTimeout(TIMEOUT_MILLIS);
            socket.setTcpNoDelay(true);
            return new Connection(socket);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    public static String text(String method, String target, String... headers) {
        StringBuilder text = new StringBuilder(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n");
        for (String header : headers) {
            text.append(header).append("\r\n");
        }
        return text.append("\r\n").toString();
    }

    /** Returns the header of HTTP Basic for a user whose password is the name. */
    public static String basic(String user) {
        return basic(user, user);
    }

    public static String basic(String user, String password) {
        byte[] credentials = (user + ":" + password).getBytes(StandardCharsets.UTF_8);
        return "Authorization: Basic " + Base64.getEncoder().encodeToString(credentials);
    }

    /** A response: status, headers in their order, and the body with its chunks joined. */
    public record Response(int status, List<Map.Entry<String, String>> headers, String body) {

        /** Returns the only value of a header, or null. */
        public String header(String name) {
            List<String> values = all(name);
            if (values.size() > 1) {
                throw new AssertionError(name + " is there more than once: " + values);
            }
            return values.isEmpty() ? null : values.get(0);
        }

        public List<String> all(String name) {
            return headers.stream()
                    .filter(header -> header.getKey().equalsIgnoreCase(name))
                    .map(Map.Entry::getValue)
                    .toList();
        }

        public List<String> names() {
            return headers.stream().map(Map.Entry::getKey).toList();
        }
    }

    /** A connection for several requests. */
    public static final class Connection implements AutoCloseable {

        private final Socket socket;
        private final InputStream in;

        public Connection(Socket socket) throws IOException {
            this.socket = socket;
            this.in = new java.io.BufferedInputStream(socket.getInputStream());
        }

        public Connection write(String text) {
            try {
                socket.getOutputStream().write(text.getBytes(StandardCharsets.ISO_8859_1));
                return this;
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        public Response get(String target, String... headers) {
            return write(text("GET", target, headers)).read();
        }

        /** Returns whether bytes can be read. */
        public boolean hasAnswer() {
            try {
                return in.available() > 0;
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        /** Reads one response, with the length of its headers. */
        public Response read() {
            return read(false);
        }

        /** Reads to the end of the connection. */
        public Response readToEnd() {
            return read(true);
        }

        /** Reads the response to HEAD. */
        public Response readHead() {
            try {
                Response head = head();
                return head.status == 100 ? head() : head;
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        private Response read(boolean toEnd) {
            Response head = readHead();
            try {
                return new Response(head.status, head.headers, readBody(head, toEnd));
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        private Response head() throws IOException {
            String line = readLine();
            if (!line.startsWith("HTTP/1.1 ")) {
                throw new IOException("no answer, but: " + line);
            }
            int status = Integer.parseInt(line.substring(9, 12));
            List<Map.Entry<String, String>> headers = new ArrayList<>();
            for (String header = readLine(); !header.isEmpty(); header = readLine()) {
                int colon = header.indexOf(':');
                headers.add(Map.entry(
                        header.substring(0, colon), header.substring(colon + 1).strip()));
            }
            return new Response(status, headers, "");
        }

        private String readBody(Response head, boolean toEnd) throws IOException {
            if ("chunked".equals(head.header("Transfer-Encoding"))) {
                return readChunks();
            }
            String length = head.header("Content-Length");
            byte[] body = toEnd ? in.readAllBytes() : in.readNBytes(length == null ? 0 : Integer.parseInt(length));
            return new String(body, StandardCharsets.UTF_8);
        }

        private String readChunks() throws IOException {
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            for (int size = readSize(); size > 0; size = readSize()) {
                body.write(in.readNBytes(size));
                readLine();
            }
            readLine();
            return body.toString(StandardCharsets.UTF_8);
        }

        private int readSize() throws IOException {
            return Integer.parseInt(readLine().strip(), 16);
        }

        private String readLine() throws IOException {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            for (int b = in.read(); b != '\n'; b = in.read()) {
                if (b < 0) {
                    throw new IOException("the server closed the connection after: " + line);
                }
                line.write(b);
            }
            return line.toString(StandardCharsets.ISO_8859_1).stripTrailing();
        }

        /** Resets the connection, as when a client process is killed. */
        public void reset() {
            try {
                socket.setSoLinger(true, 0);
                socket.close();
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        @Override
        public void close() {
            try {
                socket.close();
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
    }
}
