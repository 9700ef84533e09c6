package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.BucketStoreContract;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.Specs;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.KeyHash;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The contract of a bucket store, for a store in a table on a clock of the test. */
abstract class JdbcBucketStoreContract extends BucketStoreContract {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final DataSource source;
    private final BucketTable table = new BucketTable(TestDatabase.newTable());
    private final TableIds ids = new TableIds("test", "");
    private final ConnectionPool connections;
    private final BucketStore store;

    JdbcBucketStoreContract(DataSource source) {
        this.source = source;
        this.connections = TestDatabase.connections(source, table, TIMEOUT);
        this.store = TestDatabase.store(connections, table, ids, TIMEOUT, micros::get);
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

    /** The time of the database, by which rows expire. */
    private long serverMicros() {
        return connections.with(Deadline.Call.within(TIMEOUT, JdbcFailures::of), (session, call) -> table.read(
                        List.of(new byte[KeyHash.BYTES]), session, call)
                .epochMicros());
    }

    private long expiresMicros(Charge charge) throws SQLException {
        try (Connection connection = source.getConnection();
                PreparedStatement select =
                        connection.prepareStatement("SELECT expires FROM " + table.name() + " WHERE id = ?")) {
            select.setBytes(1, ids.of(BucketName.of(charge)));
            ResultSet row = select.executeQuery();
            assertThat(row.next()).isTrue();
            Instant expires = row.getObject(1, LocalDateTime.class).toInstant(ZoneOffset.UTC);
            return ChronoUnit.MICROS.between(Instant.EPOCH, expires);
        }
    }

    /** A row that expired is deleted, and a bucket without a row is full. */
    @Test
    void everyRowExpiresWhenItsBucketIsFull() throws SQLException {
        ThrottlePolicy policy = ThrottlePolicy.of("user", BucketSpec.of("1/1h"), "user");
        var random = new SplittableRandom(1);
        for (int i = 0; i < 100; i++) {
            BucketSpec spec = Specs.randomSpec(random);
            Charge all = new Charge(policy, spec, "user" + i, spec.capacity());
            long before = serverMicros();
            long full = store.take(List.of(all)).resetAfter().toNanos() / 1_000;
            assertThat(expiresMicros(all))
                    .as("seed 1, spec %d: %s", i, spec)
                    .isBetween(before + full, serverMicros() + full + 1_001_000);
        }
    }

    @Test
    void aRowIsKeptUntilItsBucketIsFullUnderTheSlowerOfTwoSpecs() throws SQLException {
        BucketSpec slow = BucketSpec.of("10000/1d");
        ThrottlePolicy policy = ThrottlePolicy.of("user", slow, "user");
        long full = serverMicros() + Duration.ofDays(1).toNanos() / 1_000;
        assertThat(store.take(List.of(Charge.of(policy, "alice", 10_000))).allowed())
                .isTrue();
        Charge quick = new Charge(policy, BucketSpec.of("1000/1ms"), "alice", 1);
        for (int i = 0; i < 10; i++) {
            advance(Duration.ofMillis(1));
            Decision decision = store.take(List.of(quick));
            if (decision.allowed()) {
                store.giveBack(decision.answers());
            }
            assertThat(expiresMicros(quick)).isGreaterThanOrEqualTo(full - 20_000);
        }
    }
}
