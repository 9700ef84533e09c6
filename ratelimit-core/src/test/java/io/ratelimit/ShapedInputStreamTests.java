package io.ratelimit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ShapedInputStreamTests {

    private final JumpingTimeSource time = new JumpingTimeSource(0);

    private TokenBucket bucket(String rate, long capacity) {
        return TokenBucket.of(BucketSpec.of(rate).withCapacity(capacity), time);
    }

    private static InputStream text(String text) {
        return new ByteArrayInputStream(text.getBytes(UTF_8));
    }

    /** Reads from an endless source for ten seconds after the first bucketful. */
    @ParameterizedTest
    @CsvSource({
        "10000/1s, 10000, 1000, 0",
        "10000/1s, 100, 1000, 80000",
        "10000/1s, 1, 1000, 0",
        "1000000/1s, 1000000, 8192, 80000",
        "1000000/1s, 1460, 8192, 80000",
        "100000000/1s, 10000000, 8192, 80000",
        "500000000/1s, 500000000, 1000000, 80000",
        "500000000/1s, 65536, 10000000, 80000",
    })
    void reachesTheRate(String rate, long capacity, int read, long oversleepNanos) throws IOException {
        JumpingTimeSource late = new JumpingTimeSource(oversleepNanos);
        BucketSpec spec = BucketSpec.of(rate).withCapacity(capacity);
        double perNano = (double) spec.rate().tokens() / 1_000_000_000;
        long bytes = 0;
        try (InputStream shaped = TokenBucket.of(spec, late).shape(endless())) {
            byte[] buffer = new byte[read];
            while (late.nanoTime() < 10_000_000_000L) {
                bytes += shaped.read(buffer);
                assertThat((double) bytes).isLessThanOrEqualTo(capacity + perNano * late.nanoTime());
            }
        }
        assertThat((bytes - capacity) / (perNano * late.nanoTime())).isCloseTo(1, within(0.02));
    }

    private static InputStream endless() {
        return new InputStream() {
            @Override
            public int read() {
                return 1;
            }

            @Override
            public int read(byte[] bytes, int offset, int length) {
                return length;
            }
        };
    }

    @Test
    void eachByteCostsATokenAndTheEndNothing() throws IOException {
        TokenBucket bucket = bucket("10/1s", 10);
        InputStream shaped = bucket.shape(text("abcde\u007f"));
        assertThat(shaped.read()).isEqualTo('a');
        assertThat(shaped.read(new byte[0])).isZero();
        assertThat(bucket.snapshot().available()).isEqualTo(9);
        assertThat(shaped.readAllBytes()).asString(UTF_8).isEqualTo("bcde\u007f");
        assertThat(shaped.read()).isEqualTo(-1);
        assertThat(shaped.read(new byte[3])).isEqualTo(-1);
        assertThat(bucket.snapshot().available()).isEqualTo(4);
    }

    @Test
    void aByteAboveAsciiIsNotTheEnd() throws IOException {
        InputStream shaped = bucket("10/1s", 10).shape(new ByteArrayInputStream(new byte[] {(byte) 0xff}));
        assertThat(shaped.read()).isEqualTo(0xff);
        assertThat(shaped.read()).isEqualTo(-1);
    }

    /** A slow source takes no tokens from other streams. */
    @Test
    void onlyWhatCameIsPaidFor() throws IOException {
        TokenBucket bucket = bucket("1000/1s", 1_000);
        InputStream slow = new InputStream() {
            @Override
            public int read() {
                return 'a';
            }

            @Override
            public int read(byte[] bytes, int offset, int length) {
                assertThat(bucket.snapshot().available()).isEqualTo(1_000);
                return 3;
            }
        };
        assertThat(bucket.shape(slow).read(new byte[500])).isEqualTo(3);
        assertThat(bucket.snapshot().available()).isEqualTo(997);
    }

    @Test
    void skippedAndTransferredBytesCostToo() throws IOException {
        InputStream shaped = bucket("10/1s", 10).shape(text("abcdefghijklmnopqrstuvwxyz"));
        assertThat(shaped.skip(12)).isEqualTo(12);
        assertThat(time.nanoTime()).isEqualTo(200_000_000);
        assertThat(shaped.readNBytes(4)).asString(UTF_8).isEqualTo("mnop");
        shaped.skipNBytes(1);
        assertThat(time.nanoTime()).isEqualTo(700_000_000);
        ByteArrayOutputStream rest = new ByteArrayOutputStream();
        assertThat(shaped.transferTo(rest)).isEqualTo(9);
        assertThat(rest).hasToString("rstuvwxyz");
        assertThat(time.nanoTime()).isEqualTo(1_600_000_000);
        assertThat(shaped.markSupported()).isFalse();
    }

    @Test
    void availableCountsReceivedBytesThatHaveTokens() throws IOException {
        TokenBucket bucket = bucket("10/1s", 10);
        InputStream shaped = bucket.shape(text("abcdefghijklmnopqrst"));
        assertThat(shaped.available()).isEqualTo(10);
        assertThat(bucket.tryAcquire(7)).isTrue();
        assertThat(shaped.available()).isEqualTo(3);
        bucket.giveBack(7);
        shaped.skipNBytes(18);
        time.parkUntil(time.nanoTime() + 900_000_000);
        assertThat(shaped.available()).isEqualTo(2);
    }

    @Test
    void bytesWhoseTokensComeTooLateAreKept() throws IOException {
        TokenBucket bucket = bucket("1000/1s", 100);
        InputStream shaped = bucket.shape(text("abcdefghijklmnopqrst"), Duration.ofMillis(10));
        assertThat(bucket.tryAcquire(100)).isTrue();
        Reservation other = bucket.reserve(100);
        assertThatIOException()
                .isThrownBy(() -> shaped.read(new byte[3]))
                .withMessage("the tokens of the next 3 bytes come in 103ms, and max-wait is 10ms; 0 bytes had passed");
        assertThatIOException().isThrownBy(() -> shaped.read(new byte[2]));
        assertThat(other.cancel()).isTrue();
        assertThat(bucket.snapshot().resetAfter()).isEqualTo(Duration.ofMillis(100));
        time.parkUntil(100_000_000);
        assertThat(shaped.available()).isEqualTo(20);
        assertThat(shaped.readAllBytes()).asString(UTF_8).isEqualTo("abcdefghijklmnopqrst");
        assertThat(bucket.snapshot().available()).isEqualTo(80);
    }

    @Test
    void paidBytesAreReturnedBeforeTheRestIsTooLate() throws IOException {
        TokenBucket bucket = bucket("1000/1s", 4);
        InputStream shaped = bucket.shape(text("abcdefgh"), Duration.ZERO);
        byte[] bytes = new byte[8];
        assertThat(shaped.read(bytes)).isEqualTo(4);
        assertThatIOException().isThrownBy(() -> shaped.read(bytes));
        time.parkUntil(4_000_000);
        assertThat(shaped.readNBytes(4)).asString(UTF_8).isEqualTo("efgh");
    }

    @Test
    void interruptionLosesNoByteAndNoToken() throws IOException {
        ManualTimeSource still = new ManualTimeSource();
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000/1s").withCapacity(4), still);
        InputStream shaped = bucket.shape(text("abcdefgh"));
        Thread.currentThread().interrupt();
        assertThat(shaped.read(new byte[8])).isEqualTo(4);
        assertThatExceptionOfType(InterruptedIOException.class).isThrownBy(() -> shaped.read(new byte[8]));
        assertThat(Thread.interrupted()).isTrue();
        assertThat(bucket.snapshot().resetAfter()).isEqualTo(Duration.ofMillis(4));
        still.advance(Duration.ofMillis(4));
        assertThat(shaped.readNBytes(4)).asString(UTF_8).isEqualTo("efgh");
    }

    /** Each byte of the source arrives once and is paid for once, for any read lengths and failures. */
    @RepeatedTest(50)
    void bytesComeOnceAndInOrder(RepetitionInfo run) throws IOException {
        var random = new SplittableRandom(run.getCurrentRepetition());
        byte[] sent = new byte[2_000];
        random.nextBytes(sent);
        TokenBucket bucket = bucket("1000/1s", random.nextInt(1, 60));
        assertThat(bucket.tryAcquire(bucket.snapshot().capacity())).isTrue();
        InputStream shaped = bucket.shape(new ByteArrayInputStream(sent), Duration.ofMillis(random.nextInt(30)));
        ByteArrayOutputStream came = new ByteArrayOutputStream();
        byte[] buffer = new byte[100];
        for (int read = 0; read >= 0; ) {
            Reservation other = random.nextInt(3) == 0 ? bucket.reserve(1) : null;
            try {
                read = shaped.read(buffer, 0, random.nextInt(1, 100));
                came.write(buffer, 0, Math.max(read, 0));
            } catch (IOException tooLate) {
                time.parkUntil(time.nanoTime() + random.nextInt(20_000_000));
            }
            if (other != null) {
                other.cancel();
            }
        }
        assertThat(came.toByteArray()).as("seed %d", run.getCurrentRepetition()).isEqualTo(sent);
        assertThat(time.nanoTime()).isGreaterThanOrEqualTo(2_000_000_000);
    }

    @Test
    void closesTheOther() throws IOException {
        AtomicBoolean closed = new AtomicBoolean();
        InputStream other = new ByteArrayInputStream(new byte[1]) {
            @Override
            public void close() {
                closed.set(true);
            }
        };
        bucket("1/s", 1).shape(other).close();
        assertThat(closed).isTrue();
    }

    @Test
    void rejectsANegativeWaitAndARangeBeyondTheArray() {
        TokenBucket bucket = bucket("1/s", 1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.shape(text(""), Duration.ofNanos(-1)))
                .withMessage("max-wait must be zero or more, but was PT-0.000000001S");
        assertThatExceptionOfType(IndexOutOfBoundsException.class)
                .isThrownBy(() -> bucket.shape(text("")).read(new byte[2], 1, 2));
    }
}
