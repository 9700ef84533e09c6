package io.ratelimit.benchmarks.bounds;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** A PostgreSQL that Maven fetched. It fails by being suspended: connections stay open and nothing answers. */
final class PostgresBackend implements Backend {

    private final Path data;
    private final EmbeddedPostgres server;

    PostgresBackend() throws IOException {
        this.data = Files.createTempDirectory("bounds").resolve("data");
        this.server = EmbeddedPostgres.builder().setDataDirectory(data).start();
    }

    @Override
    public int port() {
        return server.getPort();
    }

    @Override
    public void fail() throws Exception {
        signal("STOP");
    }

    @Override
    public void recover() throws Exception {
        signal("CONT");
    }

    private void signal(String name) throws Exception {
        String pid = Files.readAllLines(data.resolve("postmaster.pid")).get(0);
        ProcessHandle server = ProcessHandle.of(Long.parseLong(pid)).orElseThrow();
        for (ProcessHandle process :
                Stream.concat(Stream.of(server), server.children()).toList()) {
            Backend.signal(name, Long.toString(process.pid()));
        }
    }

    @Override
    public void evictBeyond(int bytes) {}

    @Override
    public void close() throws IOException {
        server.close();
        Files.delete(data.getParent());
    }
}
