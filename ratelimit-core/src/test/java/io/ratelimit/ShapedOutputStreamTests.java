package io.ratelimit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.within;

import io.ratelimit.BucketSpec.Refill;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ShapedOutputStreamTests {

    private static final long TEN_SECONDS = Duration.ofSeconds(10).toNanos();

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    /** Counts the bytes, and checks that they never exceed a full bucket plus the refill. */
    private static final class Meter extends OutputStream {

        private final TimeSource time;
        private final BucketSpec spec;
        private long bytes;

        Meter(TimeSource time, BucketSpec spec) {
            this.time = time;
            this.spec = spec;
        }

        @Override
        public void write(int oneByte) {
            count(1);
        }

        @Override
        public void write(byte[] buffer, int offset, int length) {
            assertThat((long) length).isLessThanOrEqualTo(spec.capacity());
            count(length);
        }

        private void count(long more) {
            bytes += more;
            assertThat((double) bytes).isLessThanOrEqualTo(spec.capacity() + rate() * time.nanoTime());
        }

        double rate() {
            return (double) spec.rate().tokens() / spec.rate().period().toNanos();
        }
    }

    /** Returns the ratio of the bytes passed in the ten seconds after the first bucketful to those of the rate. */
    private static double accuracy(BucketSpec spec, JumpingTimeSource time, TokenBucket bucket, int write)
            throws IOException {
        Meter meter = new Meter(time, spec);
        try (OutputStream shaped = bucket.shape(meter)) {
            byte[] bytes = new byte[write];
            while (meter.bytes < spec.capacity()) {
                shaped.write(bytes, 0, (int) Math.min(write, spec.capacity() - meter.bytes));
            }
            assertThat(time.parks()).isZero();
            while (time.nanoTime() < TEN_SECONDS) {
                shaped.write(bytes);
            }
        }
        return (meter.bytes - spec.capacity()) / (meter.rate() * time.nanoTime());
    }

    /** S3.7. */
    @ParameterizedTest
    @CsvSource({
        "10000/1s, 10000, 1000",
        "10000/1s, 100, 1000",
        "10000/1s, 1, 1000",
        "10000/1s, 10000, 7",
        "1000000/1s, 1000000, 8192",
        "1000000/1s, 1460, 8192",
        "100000000/1s, 100000000, 8192",
        "100000000/1s, 65536, 1000000",
        "500000000/1s, 500000000, 1000000",
        "500000000/1s, 65536, 10000000",
        "500000000/1s, 5000000, 8192",
    })
    void reachesExactlyTheRateIfThreadsWakeInTime(String rate, long capacity, int write) throws IOException {
        BucketSpec spec = BucketSpec.of(rate).withCapacity(capacity);
        JumpingTimeSource time = new JumpingTimeSource(0);
        assertThat(accuracy(spec, time, TokenBucket.of(spec, time), write)).isCloseTo(1, within(1e-9));
    }

    /** A parked thread wakes up late; a small bucket is full long before. */
    @ParameterizedTest
    @CsvSource({
        "10000/1s, 10000, 1000",
        "10000/1s, 1, 1000",
        "1000000/1s, 1460, 81920",
        "100000000/1s, 65536, 10000000",
        "500000000/1s, 65536, 50000000",
        "500000000/1s, 5000000, 8192",
    })
    void reachesTheRateAlthoughThreadsWakeLate(String rate, long capacity, int write) throws IOException {
        BucketSpec spec = BucketSpec.of(rate).withCapacity(capacity);
        JumpingTimeSource time = new JumpingTimeSource(80_000);
        assertThat(accuracy(spec, time, TokenBucket.of(spec, time), write)).isCloseTo(1, within(0.02));
    }

    @Test
    void aStripedBucketShapesAsWell() throws IOException {
        BucketSpec spec = BucketSpec.of("1000000/1s").withCapacity(50_000);
        JumpingTimeSource time = new JumpingTimeSource(0);
        assertThat(accuracy(spec, time, TokenBucket.striped(spec, 4, time), 8192))
                .isCloseTo(1, within(1e-9));
    }

    /** The stream can't reach the rate with one park for each piece, but loses nothing else. */
    @Test
    void aBucketOfOneByteIsSlowAtALargeRate() throws IOException {
        JumpingTimeSource time = new JumpingTimeSource(50_000);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("500000000/1s").withCapacity(1), time);
        try (OutputStream shaped = bucket.shape(out)) {
            shaped.write(new byte[64_001]);
        }
        assertThat(out.size()).isEqualTo(64_001);
        assertThat(time.parks()).isBetween(900L, 1_100L);
    }

    @Test
    void aLargeBucketParksAHundredTimesASecond() throws IOException {
        JumpingTimeSource time = new JumpingTimeSource(0);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000000/1s"), time);
        bucket.shape(out).write(new byte[2_000_000]);
        assertThat(time.nanoTime()).isEqualTo(1_000_000_000);
        assertThat(time.parks()).isEqualTo(100);
    }

    @Test
    void intervalRefillPassesABatchAtEachTick() throws IOException {
        JumpingTimeSource time = new JumpingTimeSource(0);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000/1s").withRefill(Refill.INTERVAL), time);
        bucket.shape(out).write(new byte[3_000]);
        assertThat(time.nanoTime()).isEqualTo(2_000_000_000);
        assertThat(time.parks()).isEqualTo(2);
    }

    @Test
    void bytesArriveUnchangedAndEachCostsAToken() throws IOException {
        JumpingTimeSource time = new JumpingTimeSource(0);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("10/1s"), time);
        try (OutputStream shaped = bucket.shape(out)) {
            shaped.write('a');
            assertThat(bucket.snapshot().available()).isEqualTo(9);
            shaped.write("bcdefghijklmnopqrs".getBytes(UTF_8));
            shaped.write("...tu...".getBytes(UTF_8), 3, 2);
            shaped.write(new byte[0]);
            shaped.write(new byte[5], 5, 0);
        }
        assertThat(out).hasToString("abcdefghijklmnopqrstu");
        assertThat(time.nanoTime()).isEqualTo(1_100_000_000);
    }

    @Test
    void flushesAndClosesTheOther() throws IOException {
        AtomicBoolean flushed = new AtomicBoolean();
        AtomicBoolean closed = new AtomicBoolean();
        OutputStream other = new ByteArrayOutputStream() {
            @Override
            public void flush() {
                flushed.set(true);
            }

            @Override
            public void close() {
                closed.set(true);
            }
        };
        OutputStream shaped = TokenBucket.of(BucketSpec.of("1/s")).shape(other);
        shaped.flush();
        assertThat(flushed).isTrue();
        assertThat(closed).isFalse();
        shaped.close();
        assertThat(closed).isTrue();
    }

    @Test
    void aPieceThatWouldWaitTooLongIsNotWrittenAndCostsNothing() throws IOException {
        JumpingTimeSource time = new JumpingTimeSource(0);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000/1s").withCapacity(100), time);
        OutputStream shaped = bucket.shape(out, Duration.ofMillis(200));
        assertThat(bucket.tryAcquire(60)).isTrue();
        Reservation other = bucket.reserve(100);
        Reservation another = bucket.reserve(100);
        Reservation third = bucket.reserve(50);
        assertThatIOException()
                .isThrownBy(() -> shaped.write(new byte[15]))
                .withMessage(
                        "the tokens of the next 10 bytes come in 220ms, and max-wait is 200ms; 0 bytes had passed");
        assertThat(out.size()).isZero();
        assertThat(time.parks()).isZero();
        assertThat(third.cancel() && another.cancel() && other.cancel()).isTrue();
        assertThat(bucket.snapshot().available()).isEqualTo(40);
        shaped.write(new byte[45]);
        assertThat(time.nanoTime()).isEqualTo(5_000_000);
    }

    @Test
    void aMessageContainsTheBytesPassed() {
        ManualTimeSource time = new ManualTimeSource();
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000/1s").withCapacity(100), time);
        OutputStream shaped = bucket.shape(out, Duration.ZERO);
        assertThatIOException()
                .isThrownBy(() -> shaped.write(new byte[105]))
                .withMessage("the tokens of the next 5 bytes come in 5ms, and max-wait is 0s; 100 bytes had passed");
        assertThat(out.size()).isEqualTo(100);
    }

    /** Pieces are small enough to come within any longest wait. */
    @ParameterizedTest
    @ValueSource(longs = {1, 3, 10, 1_000})
    void aStreamAloneNeverWaitsTooLong(long maxWaitMillis) throws IOException {
        JumpingTimeSource time = new JumpingTimeSource(0);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("10000/1s"), time);
        bucket.shape(out, Duration.ofMillis(maxWaitMillis)).write(new byte[20_000]);
        assertThat(time.nanoTime()).isEqualTo(1_000_000_000);
    }

    @Test
    void interruptionStopsTheWaitingAndGivesBack() throws Exception {
        ManualTimeSource time = new ManualTimeSource();
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000/1s").withCapacity(5), time);
        CompletableFuture<Boolean> flag = new CompletableFuture<>();
        CompletableFuture<Throwable> thrown = new CompletableFuture<>();
        Thread writer = new Thread(() -> {
            try {
                bucket.shape(out).write(new byte[100]);
            } catch (IOException stopped) {
                flag.complete(Thread.currentThread().isInterrupted());
                thrown.complete(stopped);
            }
        });
        writer.start();
        while (time.waiting() == 0) {
            Thread.onSpinWait();
        }
        writer.interrupt();
        assertThat(thrown.get())
                .isInstanceOf(InterruptedIOException.class)
                .hasMessage("interrupted while waiting for tokens, after 5 bytes had passed")
                .extracting("bytesTransferred")
                .isEqualTo(5);
        assertThat(flag.get()).isTrue();
        assertThat(out.size()).isEqualTo(5);
        assertThat(bucket.decide(1).retryNanos()).isEqualTo(1_000_000);
    }

    @Test
    void anInterruptedThreadThatNeedNotWaitWrites() throws IOException {
        ManualTimeSource time = new ManualTimeSource();
        OutputStream shaped = TokenBucket.of(BucketSpec.of("10/1s"), time).shape(out);
        Thread.currentThread().interrupt();
        shaped.write(new byte[10]);
        assertThatExceptionOfType(InterruptedIOException.class).isThrownBy(() -> shaped.write(1));
        assertThat(Thread.interrupted()).isTrue();
        assertThat(out.size()).isEqualTo(10);
    }

    @Test
    void reservedTokensAreGivenBackIfTheOtherStreamFails() {
        JumpingTimeSource time = new JumpingTimeSource(0);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000/1s").withCapacity(5), time);
        OutputStream failing = new OutputStream() {
            @Override
            public void write(int oneByte) throws IOException {
                throw new IOException("broken pipe");
            }
        };
        assertThatIOException()
                .isThrownBy(() -> bucket.shape(failing).write(new byte[100]))
                .withMessage("broken pipe");
        assertThat(bucket.snapshot().resetAfter()).isEqualTo(Duration.ofMillis(5));
    }

    /** S3.7: an endless stream delays the pieces of another only by its own next pieces. */
    @ParameterizedTest
    @ValueSource(longs = {10, 1_000, 100_000})
    void streamsShareABucketPieceByPiece(long capacity) throws IOException {
        JumpingTimeSource time = new JumpingTimeSource(0);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("100000/1s").withCapacity(capacity), time);
        assertThat(bucket.tryAcquire(capacity)).isTrue();
        OutputStream second = bucket.shape(out);
        OutputStream first = bucket.shape(new OutputStream() {
            @Override
            public void write(int oneByte) {
                throw new AssertionError("byte by byte");
            }

            @Override
            public void write(byte[] bytes, int offset, int length) throws IOException {
                long before = time.nanoTime();
                second.write(1);
                assertThat(time.nanoTime() - before).isLessThanOrEqualTo(20_000_000);
            }
        });
        first.write(new byte[50_000]);
        assertThat(out.size()).isGreaterThanOrEqualTo(50);
    }

    @Test
    void followsABucketThatShrinks() throws IOException {
        JumpingTimeSource time = new JumpingTimeSource(0);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000/1s").withCapacity(20), time);
        OutputStream shaped = bucket.shape(new OutputStream() {
            @Override
            public void write(int oneByte) {
                bucket.reconfigure(BucketSpec.of("1000/1s").withCapacity(2));
                out.write(oneByte);
            }
        });
        shaped.write(new byte[100]);
        assertThat(out.size()).isEqualTo(100);
    }

    @Test
    void rejectsAnInvalidWaitAndAMissingStream() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/s"));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.shape(out, Duration.ofSeconds(-1)))
                .withMessage("max-wait must be zero or more, but was -1s");
        assertThatNullPointerException().isThrownBy(() -> bucket.shape((OutputStream) null));
    }

    @Test
    void wantsARangeOfTheArray() {
        OutputStream shaped = TokenBucket.of(BucketSpec.of("1/s")).shape(out);
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> shaped.write(new byte[2], 1, 2));
        assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> shaped.write(new byte[2], 0, -1));
        assertThat(out.size()).isZero();
    }

    /** Real time has only a lower bound. */
    @Test
    void realTimePassesAsWell() throws IOException {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("10000/1s").withCapacity(100));
        long before = System.nanoTime();
        bucket.shape(out).write(new byte[500]);
        assertThat(System.nanoTime() - before).isGreaterThanOrEqualTo(40_000_000 - 1);
        assertThat(out.size()).isEqualTo(500);
    }
}
