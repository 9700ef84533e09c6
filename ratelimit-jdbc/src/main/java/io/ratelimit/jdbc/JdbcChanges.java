package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.CompareAndSetBucketStore.Reading;
import io.ratelimit.jdbc.BucketTable.Write;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.SignedChangeBoard;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The changes of limits for all instances: a row for each limit, in the table of the buckets. A value has an HMAC if there
 * is a secret. Each operation fails with a {@link BackendException} after at most a second. Thread-safe.
 */
final class JdbcChanges extends SignedChangeBoard {

    private static final Duration TIMEOUT = Duration.ofSeconds(1);
    private static final Duration TO_LIVE = Duration.ofDays(365 * 100);

    private final ConnectionPool connections;
    private final BucketTable table;
    private final TableIds ids;
    private final ExecutorService thread = Executors.newSingleThreadExecutor(work -> {
        Thread daemon = new Thread(work, "ratelimit-jdbc-changes");
        daemon.setDaemon(true);
        return daemon;
    });

    /** @param secret the key of the HMAC of changes; empty for none */
    JdbcChanges(ConnectionPool connections, BucketTable table, TableIds ids, String prefix, String secret) {
        super(prefix, secret, "ratelimit.jdbc.key-secret", "the database");
        this.connections = connections;
        this.table = table;
        this.ids = ids;
    }

    @Override
    public CompletableFuture<Posted> read(Collection<String> limits) {
        List<String> names = List.copyOf(limits);
        return call((session, call) -> {
            List<byte[]> rows = names.stream().map(ids::ofChange).toList();
            Reading reading = table.read(rows.isEmpty() ? List.of(ids.ofChange("")) : rows, session, call);
            Map<String, String> changes = new HashMap<>();
            for (int i = 0; i < names.size(); i++) {
                byte[] change = reading.values().get(i);
                if (change != null) {
                    changes.put(names.get(i), new String(change, StandardCharsets.UTF_8));
                }
            }
            return new Posted(Instant.EPOCH.plus(reading.epochMicros(), ChronoUnit.MICROS), changes);
        });
    }

    @Override
    public CompletableFuture<?> put(String limit, String signed) {
        byte[] id = ids.ofChange(limit);
        byte[] value = signed.getBytes(StandardCharsets.UTF_8);
        return call((session, call) -> {
            boolean written = false;
            while (!written) {
                Reading before = table.read(List.of(id), session, call);
                Write write =
                        new Write(id, before.values().get(0), value, before.epochMicros(), Long.MAX_VALUE, TO_LIVE);
                written = table.compareAndSet(List.of(write), session, call);
            }
            return true;
        });
    }

    @Override
    public CompletableFuture<Boolean> remove(String limit) {
        return call((session, call) -> table.remove(ids.ofChange(limit), session, call));
    }

    private <T> CompletableFuture<T> call(ConnectionPool.Work<T> work) {
        return CompletableFuture.supplyAsync(
                () -> connections.with(Deadline.Call.within(TIMEOUT, JdbcFailures::of), work), thread);
    }

    void close() {
        thread.shutdownNow();
    }
}
