package io.ratelimit.migration;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.util.concurrent.ManualStopwatch;
import com.google.common.util.concurrent.RateLimiter;
import io.ratelimit.BucketSpec;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.TokenBucket;
import java.time.Duration;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** The examples of {@code docs/migrating/guava.md}, on one clock. */
class GuavaMigrationTests {

    private final ManualTimeSource time = new ManualTimeSource();
    private final RateLimiter before = ManualStopwatch.limiter(5, time);
    private final TokenBucket after = TokenBucket.of(BucketSpec.of("5/1s").withCapacity(6), time);

    @Test
    void theExamplesAllowTheFirstCall() {
        assertThat(Stream.of(Before.first(), After.first())).containsOnly(true);
    }

    @Test
    void afterAPauseBothAllowTheSameCalls() {
        time.advance(Duration.ofSeconds(10));

        List<Boolean> guava = calls(before::tryAcquire);
        List<Boolean> ours = calls(() -> after.tryAcquire(1));

        assertThat(ours).isEqualTo(guava).startsWith(true, true, true, true, true, true, false, false, true, false);
    }

    /** Eight calls at once, then two every 200 ms. */
    private List<Boolean> calls(BooleanSupplier call) {
        Stream.Builder<Boolean> answers = Stream.builder();
        for (int i = 0; i < 8; i++) {
            answers.add(call.getAsBoolean());
        }
        for (int i = 0; i < 5; i++) {
            time.advance(Duration.ofMillis(200));
            answers.add(call.getAsBoolean()).add(call.getAsBoolean());
        }
        time.advance(Duration.ofSeconds(10));
        return answers.build().toList();
    }

    @Test
    void atTheStartGuavaAllowsOneCallAndAFullBucketSix() {
        assertThat(Stream.generate(before::tryAcquire).limit(7))
                .containsExactly(true, false, false, false, false, false, false);
        assertThat(Stream.generate(() -> after.tryAcquire(1)).limit(7))
                .containsExactly(true, true, true, true, true, true, false);

        TokenBucket paced = TokenBucket.of(BucketSpec.of("5/1s").withCapacity(1), time);
        assertThat(Stream.generate(() -> paced.tryAcquire(1)).limit(2)).containsExactly(true, false);
    }

    @Test
    void theCallAfterALargeOneWaitsInGuava() {
        assertThat(before.tryAcquire(100)).isTrue();
        time.advance(Duration.ofMillis(19_999));
        assertThat(before.tryAcquire()).isFalse();
        time.advance(Duration.ofMillis(1));
        assertThat(before.tryAcquire()).isTrue();

        assertThat(after.tryAcquire(100)).isFalse();
    }

    @Test
    void aWaitThatIsTooLongIsRefusedAtOnce() throws InterruptedException {
        assertThat(before.tryAcquire(6)).isTrue();
        assertThat(after.tryAcquire(6)).isTrue();
        time.advance(Duration.ofMillis(199));

        assertThat(before.tryAcquire(2, Duration.ofMillis(1000))).isFalse();
        assertThat(after.tryAcquire(2, Duration.ofMillis(200))).isFalse();
    }

    @Test
    void bothWaitForTheirTokens() {
        time.advance(Duration.ofSeconds(10));
        assertThat(before.tryAcquire(6)).isTrue();
        assertThat(after.tryAcquire(6)).isTrue();
        assertThat(before.acquire(1)).isEqualTo(0.2); // moves the clock

        Thread waiting = new Thread(() -> {
            try {
                After.waitFor(after);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        });
        waiting.start();
        Awaitility.await().until(() -> time.waiting() == 1);
        time.advance(Duration.ofMillis(200));
        Awaitility.await().until(() -> time.waiting() == 1 && after.snapshot().available() == 0);
        time.advance(Duration.ofMillis(400));
        Awaitility.await().until(() -> !waiting.isAlive());
    }

    static class Before {

        static boolean first() {
            RateLimiter limiter = RateLimiter.create(5);
            boolean allowed = limiter.tryAcquire();
            return allowed;
        }

        static boolean waitFor(RateLimiter limiter) {
            double seconds = limiter.acquire(2);
            boolean inTime = limiter.tryAcquire(2, Duration.ofSeconds(1));
            return seconds >= 0 && inTime;
        }
    }

    static class After {

        static boolean first() {
            TokenBucket bucket = TokenBucket.of(BucketSpec.of("5/1s").withCapacity(6));
            boolean allowed = bucket.tryAcquire(1);
            return allowed;
        }

        static boolean waitFor(TokenBucket bucket) throws InterruptedException {
            bucket.acquire(2);
            boolean inTime = bucket.tryAcquire(2, Duration.ofSeconds(1));
            return inTime;
        }
    }
}
