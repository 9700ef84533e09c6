package io.ratelimit.jdbc;

import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.lease.StoredPlace;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Rows of a table, which other places may share. */
record JdbcPlace(ConnectionPool connections, BucketTable table, TableIds ids) implements StoredPlace {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final AtomicInteger PLACES = new AtomicInteger();

    /** Work with a row. */
    private interface Work<T> {
        T with(byte[] id, Session session, Deadline.Call call) throws SQLException;
    }

    /** Creates a table. */
    static JdbcPlace in(DataSource source) {
        BucketTable table = new BucketTable(TestDatabase.newTable());
        return new JdbcPlace(TestDatabase.connections(source, table, TIMEOUT), table, new TableIds("", ""));
    }

    /** Returns other rows of this table. */
    JdbcPlace next() {
        return new JdbcPlace(connections, table, new TableIds("place" + PLACES.incrementAndGet(), ""));
    }

    @Override
    public LeasingBucketStore store(LongSupplier micros) {
        return TestDatabase.store(connections, table, ids, TIMEOUT, micros);
    }

    @Override
    public byte @Nullable [] value(Charge charge) {
        return with(charge, (id, session, call) -> table.read(List.of(id), session, call)
                .values()
                .get(0));
    }

    @Override
    public void remove(Charge charge) {
        with(charge, table::remove);
    }

    private <T> T with(Charge charge, Work<T> work) {
        return connections.with(
                Deadline.Call.within(TIMEOUT, JdbcFailures::of),
                (session, call) -> work.with(ids.of(BucketName.of(charge)), session, call));
    }
}
