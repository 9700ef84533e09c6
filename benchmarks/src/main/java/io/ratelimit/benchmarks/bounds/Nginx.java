package io.ratelimit.benchmarks.bounds;

import io.ratelimit.benchmarks.LocalRedis;
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.springframework.util.FileSystemUtils;

/** An nginx that limits requests by {@code limit_req}. A call is an HTTP request on a connection that stays open. */
final class Nginx implements Instance {

    private final Path directory;
    private final int port;
    private final Process process;
    private final Queue<Connection> idle = new ConcurrentLinkedQueue<>();

    private Nginx(Path directory, int port, Process process) {
        this.directory = directory;
        this.port = port;
        this.process = process;
    }

    /** Returns the binary that {@code RATELIMIT_TEST_NGINX} names, or the one that is installed. */
    static Optional<Path> binary() {
        return Stream.of(System.getenv().getOrDefault("RATELIMIT_TEST_NGINX", "/usr/sbin/nginx"), "/usr/bin/nginx")
                .map(Path::of)
                .filter(Files::isExecutable)
                .findFirst();
    }

    /** @param clock variables that give the process a clock of its own */
    static Nginx start(Limit limit, Map<String, String> clock) throws IOException, InterruptedException {
        Path directory = Files.createTempDirectory("nginx");
        int port = LocalRedis.freePort();
        configure(directory, port, limit);
        ProcessBuilder builder = new ProcessBuilder(
                        binary().orElseThrow().toString(), "-p", directory + "/", "-e", "error.log", "-c", "nginx.conf")
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("output").toFile());
        builder.environment().putAll(clock);
        Nginx nginx = new Nginx(directory, port, builder.start());
        for (int i = 0; !nginx.answers(); i++) {
            if (i == 200) {
                throw new IOException(Files.readString(directory.resolve("output")));
            }
            TimeUnit.MILLISECONDS.sleep(20);
        }
        return nginx;
    }

    private static void configure(Path directory, int port, Limit limit) throws IOException {
        Files.writeString(directory.resolve("nginx.conf"), """
                daemon off;
                pid nginx.pid;
                worker_processes 1;
                error_log error.log warn;
                events {}
                http {
                    access_log off;
                    client_body_temp_path body;
                    proxy_temp_path proxy;
                    fastcgi_temp_path fastcgi;
                    uwsgi_temp_path uwsgi;
                    scgi_temp_path scgi;
                    keepalive_requests 1000000;
                    limit_req_zone $arg_key zone=keys:64k rate=%dr/s;
                    limit_req_status 429;
                    limit_req_log_level info;
                    server {
                        listen 127.0.0.1:%d;
                        location = /up { empty_gif; }
                        location = /limited {
                            limit_req zone=keys burst=%d nodelay;
                            empty_gif;
                        }
                    }
                }
                """.formatted(limit.perSecond(), port, limit.tokens() - 1));
    }

    private boolean answers() {
        try (Connection connection = new Connection()) {
            return connection.status("/up") == 200;
        } catch (IOException notYet) {
            return false;
        }
    }

    @Override
    public boolean allows(String key) throws IOException {
        String path = "/limited?key=" + key;
        Connection connection = idle.poll();
        int status;
        try {
            connection = connection == null ? new Connection() : connection;
            status = connection.status(path);
        } catch (IOException closedByReload) {
            connection = new Connection();
            status = connection.status(path);
        }
        idle.add(connection);
        return status == 200;
    }

    /** Reloads the configuration, and returns when the old worker is gone. */
    @Override
    public void change(Limit limit) throws IOException, InterruptedException {
        ProcessHandle worker = process.children().findFirst().orElseThrow();
        configure(directory, port, limit);
        new ProcessBuilder("kill", "-HUP", Long.toString(process.pid())).start().waitFor();
        for (int i = 0; worker.isAlive() && i < 100; i++) {
            TimeUnit.MILLISECONDS.sleep(5);
        }
    }

    @Override
    public void close() throws IOException {
        idle.forEach(Connection::close);
        process.destroy();
        process.onExit().join();
        FileSystemUtils.deleteRecursively(directory);
    }

    private final class Connection implements AutoCloseable {

        private final Socket socket;
        private final InputStream in;

        Connection() throws IOException {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.setTcpNoDelay(true);
            in = new BufferedInputStream(socket.getInputStream());
        }

        int status(String path) throws IOException {
            String request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            int status = Integer.parseInt(line().split(" ")[1]);
            int length = 0;
            for (String header = line(); !header.isEmpty(); header = line()) {
                if (header.startsWith("Content-Length: ")) {
                    length = Integer.parseInt(header.substring("Content-Length: ".length()));
                }
            }
            in.skipNBytes(length);
            return status;
        }

        private String line() throws IOException {
            StringBuilder line = new StringBuilder();
            for (int next = in.read(); next != '\n'; next = in.read()) {
                if (next < 0) {
                    throw new EOFException();
                }
                line.append((char) next);
            }
            return line.toString().strip();
        }

        @Override
        public void close() {
            try {
                socket.close();
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
    }
}
