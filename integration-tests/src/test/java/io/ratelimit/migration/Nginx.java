package io.ratelimit.migration;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.springframework.util.FileSystemUtils;

/** A process of nginx on a free port, in front of an application that always answers 200. */
final class Nginx implements AutoCloseable {

    private final Process process;
    private final HttpServer application;
    private final Path directory;
    private final int port;

    private Nginx(Process process, HttpServer application, Path directory, int port) {
        this.process = process;
        this.application = application;
        this.directory = directory;
        this.port = port;
    }

    /** Returns the binary that {@code RATELIMIT_TEST_NGINX} names, or the one that is installed. */
    static Optional<Path> binary() {
        String named = System.getenv("RATELIMIT_TEST_NGINX");
        return (named != null
                        ? Stream.of(named)
                        : Stream.of("/usr/sbin/nginx", "/usr/local/bin/nginx", "/usr/bin/nginx"))
                .map(Path::of)
                .filter(Files::isExecutable)
                .findFirst();
    }

    static Nginx start(String configuration) throws IOException {
        Path directory = Files.createTempDirectory("nginx");
        HttpServer application = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        application.createContext("/", exchange -> {
            byte[] body = "Hello".getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        application.start();
        int port = freePort();
        String server = configuration.replace("listen 8080;", "listen 127.0.0.1:%d;".formatted(port));
        Files.writeString(directory.resolve("nginx.conf"), """
                daemon off;
                pid nginx.pid;
                error_log error.log warn;
                worker_processes 1;
                events {}
                http {
                    access_log off;
                    client_body_temp_path body;
                    proxy_temp_path proxy;
                    fastcgi_temp_path fastcgi;
                    uwsgi_temp_path uwsgi;
                    scgi_temp_path scgi;
                    upstream application { server 127.0.0.1:%d; }
                %s}
                """.formatted(
                        application.getAddress().getPort(), server));
        Process process = new ProcessBuilder(
                        binary().orElseThrow().toString(), "-p", directory + "/", "-e", "error.log", "-c", "nginx.conf")
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("output").toFile())
                .start();
        Nginx nginx = new Nginx(process, application, directory, port);
        try {
            Awaitility.await("nginx in " + directory)
                    .atMost(Duration.ofSeconds(20))
                    .until(nginx::accepts);
        } catch (RuntimeException failed) {
            process.destroy();
            application.stop(0);
            throw new IllegalStateException(Files.readString(directory.resolve("output")), failed);
        }
        return nginx;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private boolean accepts() {
        try (Socket connection = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return connection.isConnected();
        } catch (IOException failed) {
            return false;
        }
    }

    Client client() {
        return Client.of(port);
    }

    @Override
    public void close() throws IOException {
        process.destroy();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        application.stop(0);
        FileSystemUtils.deleteRecursively(directory);
    }
}
