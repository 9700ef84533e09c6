package io.ratelimit.jdbc;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;

/** A PostgreSQL of one test, which stops, kills, freezes and starts it again at the same port. */
public final class RestartablePostgres implements AutoCloseable {

    private final Path directory;
    private final DataSource source;
    private final int port;
    private EmbeddedPostgres server;

    /** @param directory an empty one, for its data */
    public RestartablePostgres(Path directory) {
        this.directory = directory.resolve("data");
        this.server = start(0);
        this.port = server.getPort();
        this.source = server.getPostgresDatabase();
    }

    private EmbeddedPostgres start(int atPort) {
        try {
            return EmbeddedPostgres.builder()
                    .setDataDirectory(directory)
                    .setCleanDataDirectory(false)
                    .setPort(atPort)
                    .setPGStartupWait(TestDatabase.START)
                    .setServerConfig("synchronous_commit", "on") // as by default, but not in tests
                    .start();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    public DataSource source() {
        return source;
    }

    /** Starts the server again. */
    public void start() {
        server = start(port);
    }

    /** Stops the server regularly. */
    public void stop() {
        TestDatabase.close(server);
    }

    /** Ends the server without notice. */
    public void kill() {
        freeze(); // so that no process starts another one between the next two lines
        List<ProcessHandle> processes = processes();
        signal("-KILL", processes);
        processes.forEach(process -> process.onExit().join());
        TestDatabase.close(server); // of the directory's lock
    }

    /** Stops all processes of the server without closing a connection. */
    public void freeze() {
        signal("-STOP", processes());
    }

    /** Lets a frozen server continue. */
    public void thaw() {
        signal("-CONT", processes());
    }

    private List<ProcessHandle> processes() {
        try {
            long pid = Long.parseLong(
                    Files.readAllLines(directory.resolve("postmaster.pid")).get(0));
            ProcessHandle postmaster = ProcessHandle.of(pid).orElseThrow();
            return Stream.concat(Stream.of(postmaster), postmaster.children()).toList();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static void signal(String name, List<ProcessHandle> processes) {
        try {
            List<String> command = Stream.concat(
                            Stream.of("kill", name), processes.stream().map(process -> Long.toString(process.pid())))
                    .toList();
            new ProcessBuilder(command).start().waitFor();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    @Override
    public void close() {
        TestDatabase.close(server);
    }
}
