package io.ratelimit.jdbc;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.Reading;
import io.ratelimit.Decision;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.jdbc.BucketTable.Write;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.KeyHash;
import java.nio.ByteBuffer;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Calls that count from the last write of their process, without a read. */
class LastWritesTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final byte[] ROW = new byte[KeyHash.BYTES];
    private static final long MILLI = 1_000_000;

    /** The server's clock at the moment 0 of this process, in microseconds. */
    private static final long EPOCH = 1_795_000_000_000_000L;

    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("1000/1d").withCapacity(1_000), "user");

    private final LastWrites lastWrites = new LastWrites();

    private static byte[] value(int number) {
        return new byte[] {(byte) number};
    }

    /** Reads a value: the request takes some time to the server. */
    private void read(long sentAt, long underWay, int value) {
        Reading reading = new Reading(EPOCH + (sentAt + underWay) / 1_000, Arrays.asList(value(value)));
        lastWrites.noteRead(List.of(ROW), reading, sentAt);
    }

    private void write(int before, int after) {
        lastWrites.noteWrite(toWrite(before, after), true);
    }

    private static Write toWrite(int before, int after) {
        return new Write(ROW, value(before), value(after), EPOCH, Long.MAX_VALUE, TIMEOUT);
    }

    private void writeInSequence() {
        for (int i = 0; i < 5; i++) {
            write(i, i + 1);
        }
    }

    @Test
    void aRowIsGuessedAfterSeveralWritesInSequence() {
        read(0, 0, 0);
        for (int i = 0; i < 5; i++) {
            assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNull();
            write(i, i + 1);
        }
        assertThat(lastWrites.guess(List.of(ROW), MILLI).values()).containsExactly(value(5));
        assertThat(lastWrites.guess(List.of(ROW, "other row, 16 by".getBytes(UTF_8)), MILLI))
                .isNull();
    }

    /** A client may send many keys, and each has a row. */
    @Test
    void theRowsOfManyKeysAreForgotten() {
        read(0, 0, 0);
        writeInSequence();
        for (int i = 1; i < 100_000; i++) {
            byte[] id = ByteBuffer.allocate(KeyHash.BYTES).putInt(0, i).array();
            lastWrites.noteWrite(new Write(id, null, value(0), EPOCH, Long.MAX_VALUE, TIMEOUT), true);
        }
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNotNull();
        byte[] next = ByteBuffer.allocate(KeyHash.BYTES).putInt(0, -1).array();
        lastWrites.noteWrite(new Write(next, null, value(0), EPOCH, Long.MAX_VALUE, TIMEOUT), true);
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNull();
    }

    @Test
    void aWriteOfAnotherProcessEndsTheSequence() {
        read(0, 0, 0);
        writeInSequence();
        read(0, 0, 5);
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNotNull();
        read(0, 0, 77);
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNull();
        writeInSequence();
        lastWrites.noteWrite(toWrite(5, 6), false);
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNull();
        read(0, 0, 77);
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNull();
        writeInSequence();
        write(77, 78);
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNull();
    }

    /** The read after a wrong guess shows whether another process wrote, or only the time was wrong. */
    @Test
    void aWrongGuessOfTheTimeDoesNotEndTheSequence() {
        read(0, 0, 0);
        writeInSequence();
        lastWrites.noteWrite(toWrite(5, 6), false);
        read(0, 0, 5);
        write(5, 6);
        assertThat(lastWrites.guess(List.of(ROW), MILLI).values()).containsExactly(value(6));
        lastWrites.noteWrite(toWrite(5, 6), false); // another thread guessed the same value
        read(0, 0, 6);
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNull();
        write(6, 7);
        lastWrites.noteWrite(toWrite(7, 8), false);
        read(0, 0, 7);
        assertThat(lastWrites.guess(List.of(ROW), MILLI)).isNull();
    }

    /** The guess is late by the shortest way to the server, and by what the clocks may have drifted apart. */
    @Test
    void aGuessedTimeIsNeverBeforeTheCall() {
        writeInSequence();
        read(0, 3 * MILLI, 5);
        assertThat(lateMicros(MILLI)).isBetween(3_000L, 3_003L);
        read(10 * MILLI, MILLI, 5);
        read(11 * MILLI, 2 * MILLI, 5);
        assertThat(lateMicros(12 * MILLI)).isBetween(1_000L, 1_003L);
        assertThat(lateMicros(110 * MILLI)).isBetween(1_000L, 1_053L);
        read(110 * MILLI, MILLI + 30_000, 5);
        assertThat(lateMicros(110 * MILLI)).isBetween(1_030L, 1_033L);
    }

    private long lateMicros(long now) {
        return lastWrites.guess(List.of(ROW), now).epochMicros() - EPOCH - now / 1_000;
    }

    @Test
    void anOldClockIsNoClock() {
        writeInSequence();
        assertThat(lastWrites.guess(List.of(ROW), 0)).isNull();
        read(0, 0, 5);
        assertThat(lastWrites.guess(List.of(ROW), 1_000 * MILLI)).isNotNull();
        assertThat(lastWrites.guess(List.of(ROW), 1_001 * MILLI)).isNull();
        read(1_001 * MILLI, 5 * MILLI, 5);
        assertThat(lastWrites.guess(List.of(ROW), 1_001 * MILLI)).isNotNull();
    }

    static Stream<DataSource> databases() {
        return JdbcTableTests.databases();
    }

    /** Replaces the rows of all reads. */
    private static DataSource reading(DataSource source, Replacement rows) {
        return Replacement.ofStatements(
                source,
                (statement, sql) -> Replacement.proxy(PreparedStatement.class, statement, "executeQuery", rows));
    }

    private static JdbcBucketStore store(DataSource source, BucketTable table) {
        return TestDatabase.store(
                TestDatabase.connections(source, table, TIMEOUT),
                table,
                new TableIds("test", ""),
                TIMEOUT,
                () -> JdbcBucketStore.SERVER_TIME);
    }

    @ParameterizedTest
    @MethodSource("databases")
    void mostCallsOfAnInstanceAloneReadNothing(DataSource source) {
        AtomicInteger reads = new AtomicInteger();
        Replacement counting = (rows, arguments) -> {
            reads.incrementAndGet();
            return rows;
        };
        JdbcBucketStore store = store(reading(source, counting), new BucketTable(TestDatabase.newTable()));
        int fewest = Integer.MAX_VALUE; // a guess is too old for some calls of a busy machine
        for (int i = 0; i < 400; i++) {
            assertThat(store.take(List.of(Charge.of(POLICY, "alice", 1))).remaining())
                    .isBetween(999L - i, 1_000L - i);
            fewest = i % 40 == 39 ? Math.min(fewest, reads.getAndSet(0)) : fewest;
        }
        assertThat(fewest).as("of 40 calls").isLessThan(20);
    }

    /** A denial that is only guessed would last until the rate brought tokens. */
    @ParameterizedTest
    @MethodSource("databases")
    void tokensThatAnotherInstanceGivesBackAreFound(DataSource source) {
        BucketTable table = new BucketTable(TestDatabase.newTable());
        JdbcBucketStore one = store(source, table);
        JdbcBucketStore other = store(source, table);
        Charge hundred = Charge.of(POLICY, "alice", 100);
        for (int i = 0; i < 10; i++) {
            assertThat(one.take(List.of(hundred)).allowed()).isTrue();
        }
        other.reset(hundred);
        assertThat(one.take(List.of(hundred)).allowed()).isTrue();
        assertThat(one.snapshot(hundred).available()).isEqualTo(900);
        for (int i = 0; i < 5; i++) {
            assertThat(one.take(List.of(hundred)).allowed()).isTrue();
        }
        assertThat(other.take(List.of(hundred)).allowed()).isTrue();
        assertThat(one.take(List.of(hundred)).remaining()).isEqualTo(200);
    }

    /** The conversion of one bucket is written. That proves nothing about the other one. */
    @ParameterizedTest
    @MethodSource("databases")
    void aBucketThatIsNotWrittenIsRead(DataSource source) {
        BucketTable table = new BucketTable(TestDatabase.newTable());
        JdbcBucketStore one = store(source, table);
        Charge six = Charge.of(ThrottlePolicy.of("all", BucketSpec.of("6/1d")), "", 1);
        Charge changed = Charge.of(ThrottlePolicy.of("all", BucketSpec.of("5/1d")), "", 1);
        Charge hundred = Charge.of(POLICY, "alice", 100);
        for (int i = 0; i < 6; i++) {
            assertThat(one.take(List.of(six, hundred)).allowed()).isTrue();
        }
        store(source, table).reset(hundred);
        Decision denied = one.take(List.of(changed, hundred));
        assertThat(denied.allowed()).isFalse();
        assertThat(denied.answers().get(1).remaining()).isGreaterThan(800);
    }

    /** As after a suspension that the clock of this process doesn't count, or a jump of the database's clock. */
    @ParameterizedTest
    @MethodSource("databases")
    void aGuessThatIsAnHourOldTakesNothing(DataSource source) {
        AtomicLong behind = new AtomicLong(Duration.ofHours(1).toNanos() / 1_000);
        JdbcBucketStore store = store(
                reading(
                        source,
                        (rows, none) -> Replacement.proxy(
                                ResultSet.class, rows, "getLong", (clock, column) -> (long) clock - behind.get())),
                new BucketTable(TestDatabase.newTable()));
        Charge ten = Charge.of(ThrottlePolicy.of("api", BucketSpec.of("100/1h"), "user"), "alice", 10);
        for (int i = 1; i <= 6; i++) {
            assertThat(store.take(List.of(ten)).remaining()).isEqualTo(100 - 10 * i);
        }
        behind.set(0);
        assertThat(store.take(List.of(ten)).remaining()).isEqualTo(90);
    }

    @ParameterizedTest
    @MethodSource("databases")
    void nothingIsWrittenBeforeOrLongAfterTheTimeOfAGuess(DataSource source) {
        BucketTable table = new BucketTable(TestDatabase.newTable());
        ConnectionPool connections = TestDatabase.connections(source, table, TIMEOUT);
        Deadline.Call call = Deadline.Call.within(TIMEOUT, JdbcFailures::of);
        byte[] id = new byte[KeyHash.BYTES];
        connections.with(call, (session, same) -> {
            long now = table.read(List.of(id), session, same).epochMicros();
            Write first = new Write(id, null, value(1), now, Long.MAX_VALUE, TIMEOUT);
            assertThat(table.compareAndSet(List.of(first), session, same)).isTrue();
            byte[] before = value(1);
            for (byte[] after : new byte[][] {value(2), null}) {
                for (long ahead : new long[] {20_000_000, -20_000_000, 0}) {
                    long time = now + ahead;
                    Write write = new Write(id, before, after, time, time + 10_000_000, TIMEOUT);
                    assertThat(table.compareAndSet(List.of(write), session, same))
                            .isEqualTo(ahead == 0);
                }
                before = after;
            }
            return true;
        });
        connections.stop();
    }
}
