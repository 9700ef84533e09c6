package io.ratelimit.starter.jdbc;

import io.ratelimit.jdbc.TestDatabase;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Stands before PostgreSQL as PgBouncer does: it reads how a connection is opened, and may refuse options of the session. */
final class TestPooler implements AutoCloseable {

    private static final List<Integer> ENCRYPTION_REQUESTS = List.of(80877103, 80877104);
    private static final String REFUSAL = "SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";

    private final ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final URI server;
    private final boolean refuses;
    private final Queue<Opened> opened = new ConcurrentLinkedQueue<>();

    /** A connection with its options, and all that was sent on it. */
    record Opened(String options, StringBuffer sent) {}

    TestPooler(boolean refuses) throws IOException {
        this.refuses = refuses;
        this.server = URI.create(TestDatabase.url(TestDatabase.postgres()).substring("jdbc:".length()));
        start(() -> {
            while (true) {
                Socket client = listening.accept();
                start(() -> serve(client));
            }
        });
    }

    String url() {
        return "jdbc:postgresql://127.0.0.1:" + listening.getLocalPort() + server.getPath() + "?" + server.getQuery();
    }

    /** Returns the connections that were opened with options. */
    List<Opened> withOptions() {
        return opened.stream().filter(one -> !one.options.isEmpty()).toList();
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException closed) {
                // the end of the connection
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private void serve(Socket client) throws IOException {
        DataInputStream in = new DataInputStream(client.getInputStream());
        DataOutputStream out = new DataOutputStream(client.getOutputStream());
        int length = in.readInt();
        int version = in.readInt();
        while (ENCRYPTION_REQUESTS.contains(version)) {
            out.write('N');
            length = in.readInt();
            version = in.readInt();
        }
        byte[] parameters = in.readNBytes(length - 8);
        List<String> names = Arrays.asList(new String(parameters, StandardCharsets.UTF_8).split("\0"));
        Opened connection = new Opened(
                names.contains("options") ? names.get(names.indexOf("options") + 1) : "", new StringBuffer());
        opened.add(connection);
        if (refuses && !connection.options.isEmpty()) {
            byte[] refusal = REFUSAL.getBytes(StandardCharsets.UTF_8);
            out.write('E');
            out.writeInt(4 + refusal.length);
            out.write(refusal);
            client.close();
            return;
        }
        Socket target = new Socket(server.getHost(), server.getPort());
        DataOutputStream toServer = new DataOutputStream(target.getOutputStream());
        toServer.writeInt(length);
        toServer.writeInt(version);
        toServer.write(parameters);
        start(() -> {
            try (client;
                    target) {
                target.getInputStream().transferTo(out);
            }
        });
        try (client;
                target) {
            forward(in, toServer, connection.sent);
        }
    }

    private static void forward(InputStream in, OutputStream out, StringBuffer sent) throws IOException {
        byte[] buffer = new byte[65_536];
        for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
            sent.append(new String(buffer, 0, read, StandardCharsets.ISO_8859_1));
            out.write(buffer, 0, read);
        }
    }

    @Override
    public void close() throws IOException {
        listening.close();
    }
}
