package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.BucketStoreContract;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The contract of a bucket store, for a store in a table on a clock of the test. */
abstract class JdbcBucketStoreContract extends BucketStoreContract {

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final DataSource source;
    private final BucketTable table = new BucketTable(TestDatabase.newTable());
    private final ConnectionPool connections;
    private final BucketStore store;

    JdbcBucketStoreContract(DataSource source) {
        Duration timeout = Duration.ofSeconds(10);
        this.source = source;
        this.connections = TestDatabase.connections(source, table, timeout);
        this.store = TestDatabase.store(connections, table, new TableIds("test", ""), timeout, micros::get);
    }

    @AfterEach
    void close() {
        connections.stop();
        TestDatabase.execute(source, "DROP TABLE " + table.name());
    }

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration step) {
        micros.addAndGet(step.toNanos() / 1_000);
    }

    @Override
    protected void setWallClock(Instant now) {
        micros.set(ChronoUnit.MICROS.between(Instant.EPOCH, now));
    }

    /** As after a correction of the database's clock, or on another server after a failover. */
    @ParameterizedTest
    @CsvSource({"PT30S, PT30S", "PT1H, PT0.000001S"})
    void whenTheClockIsSetBackTimeStandsStillForAMinuteAndAStepAtMost(Duration step, Duration still) {
        Charge all = Charge.of(ThrottlePolicy.of("user", BucketSpec.of("5/5s"), "user"), "alice", 5);
        Charge one = all.withCost(1);
        assertThat(store.take(List.of(all)).allowed()).isTrue();
        advance(step.negated());
        assertThat(store.take(List.of(one)).allowed()).isFalse();
        advance(still);
        assertThat(store.take(List.of(one)).allowed()).isFalse();
        for (int i = 0; i < 3; i++) {
            advance(Duration.ofSeconds(1));
            assertThat(store.take(List.of(one)).allowed()).isTrue();
            assertThat(store.take(List.of(one)).allowed()).isFalse();
        }
    }

    /** As when the row expires, since its bucket is full, or the database loses it. */
    @Test
    void tokensOfARowThatWasDeletedDoNotComeBackToANewOne() {
        Charge all = Charge.of(ThrottlePolicy.of("user", BucketSpec.of("5/1h"), "user"), "alice", 5);
        Decision before = store.take(List.of(all));
        TestDatabase.execute(source, "DELETE FROM " + table.name());
        advance(Duration.ofNanos(1_000));
        assertThat(store.take(List.of(all)).allowed()).isTrue();
        store.giveBack(before.answers());
        assertThat(store.snapshot(all).available()).isZero();
    }
}
