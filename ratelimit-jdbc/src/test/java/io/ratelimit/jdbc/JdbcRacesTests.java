package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.jdbc.BucketTable.Write;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import io.ratelimit.remote.KeyHash;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** Calls that write to the same rows at the same time. */
class JdbcRacesTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final Charge ONE = Charge.of(ThrottlePolicy.of("all", BucketSpec.of("1000000000/1d")), "", 1);

    private final BucketTable table = new BucketTable(TestDatabase.newTable());
    private final DataSource source = TestDatabase.h2();

    /** Returns a store whose updates have other results. */
    private JdbcBucketStore store(Replacement updates, Duration timeout) {
        DataSource replaced = Replacement.ofStatements(
                source,
                (statement, sql) -> Replacement.proxy(PreparedStatement.class, statement, "executeUpdate", updates));
        return TestDatabase.store(
                TestDatabase.connections(replaced, table, TIMEOUT),
                table,
                new TableIds("test", ""),
                timeout,
                () -> JdbcBucketStore.SERVER_TIME);
    }

    @Test
    void aCallThatOthersAlwaysForestallProvesNoOutage() {
        JdbcBucketStore store = store((updated, none) -> 0, Duration.ofSeconds(1));
        assertThatThrownBy(() -> store.take(List.of(ONE))).isInstanceOf(CongestedException.class);
    }

    @Test
    void aLateReplyAfterOthersHaveForestalledTheCallForHalfOfItsTimeProvesNoOutage() {
        AtomicInteger updates = new AtomicInteger();
        Duration timeout = Duration.ofMillis(800);
        JdbcBucketStore store = store(
                (updated, none) -> {
                    if (updates.incrementAndGet() > 2) {
                        throw new SQLException("canceling statement", JdbcFailures.STATEMENT_CANCELLED);
                    }
                    LockSupport.parkNanos(timeout.toNanos() * 3 / 10);
                    return 0;
                },
                timeout);
        assertThatThrownBy(() -> store.take(List.of(ONE))).isInstanceOf(CongestedException.class);
    }

    /** Two calls that wrote in different orders could wait for each other, until the database ended one of them. */
    @Test
    void theRowsOfACallAreWrittenInTheOrderOfTheirIds() {
        List<Byte> order = new ArrayList<>();
        DataSource observed = Replacement.ofStatements(
                source,
                (statement, sql) ->
                        Replacement.proxy(PreparedStatement.class, statement, "setBytes", (nothing, arguments) -> {
                            if (sql[0].toString().startsWith("INSERT") && arguments[0].equals(3)) {
                                order.add(((byte[]) arguments[1])[0]);
                            }
                            return nothing;
                        }));
        List<Write> writes = Stream.of(0x80, 1, 0xff, 0)
                .map(first -> {
                    byte[] id = new byte[KeyHash.BYTES];
                    id[0] = first.byteValue();
                    return new Write(id, null, id, 0, Long.MAX_VALUE, TIMEOUT);
                })
                .toList();
        ConnectionPool connections = TestDatabase.connections(observed, table, TIMEOUT);

        boolean written = connections.with(
                Deadline.Call.within(TIMEOUT, JdbcFailures::of),
                (session, call) -> table.compareAndSet(writes, session, call));

        assertThat(written).isTrue();
        assertThat(order).containsExactly((byte) 0, (byte) 1, (byte) 0x80, (byte) 0xff);
        connections.stop();
    }
}
