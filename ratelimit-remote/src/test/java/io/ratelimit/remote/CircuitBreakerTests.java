package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.remote.CircuitBreaker.Round;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class CircuitBreakerTests {

    private final ManualTimeSource time = new ManualTimeSource();
    private final CircuitBreaker breaker = new CircuitBreaker(time);

    private Round enter() {
        return Objects.requireNonNull(breaker.enter());
    }

    private void fails(int times) {
        for (int i = 0; i < times; i++) {
            breaker.failed(enter());
        }
    }

    private void succeeds(int times) {
        for (int i = 0; i < times; i++) {
            assertThat(breaker.succeeded(enter())).isFalse();
        }
    }

    @Test
    void fiveFailuresInARowOpenIt() {
        fails(4);
        assertThat(breaker.failed(enter())).isTrue();

        assertThat(breaker.enter()).isNull();
    }

    @Test
    void halfOfTheLastTenOpenItToo() {
        for (int i = 0; i < 4; i++) {
            fails(1);
            succeeds(1);
        }
        assertThat(breaker.failed(enter())).isTrue();
    }

    @Test
    void fewFailuresAmongManySuccessesDoNot() {
        for (int i = 0; i < 100; i++) {
            fails(4);
            succeeds(6);
        }
        assertThat(breaker.enter()).isNotNull();
    }

    @Test
    void oneCallIsLetThroughAfterThePause() {
        fails(5);
        time.advance(CircuitBreaker.PAUSE.minusNanos(1));
        assertThat(breaker.enter()).isNull();

        time.advance(CircuitBreaker.PAUSE);
        Round probe = enter();
        assertThat(breaker.enter()).isNull();
        time.advance(CircuitBreaker.PAUSE.multipliedBy(10));
        assertThat(breaker.enter()).as("as long as it is on its way").isNull();

        assertThat(breaker.failed(probe)).as("it was open before").isFalse();
        time.advance(CircuitBreaker.PAUSE.minusNanos(1));
        assertThat(breaker.enter()).isNull();
        time.advance(CircuitBreaker.PAUSE);
        assertThat(breaker.succeeded(enter())).isTrue();
        fails(4);
        assertThat(breaker.enter()).as("earlier failures are forgotten").isNotNull();
    }

    @Test
    void afterAProbeThatNeverReportsAnotherFollows() {
        fails(5);
        time.advance(CircuitBreaker.PAUSE);
        enter();
        time.advance(CircuitBreaker.LOST.minusNanos(1));
        assertThat(breaker.enter()).isNull();

        time.advance(Duration.ofNanos(1));
        Round probe = enter();
        assertThat(breaker.enter()).isNull();
        assertThat(breaker.succeeded(probe)).isTrue();
    }

    @Test
    void aCallThatBeganBeforeTheBreakerOpenedIsIgnored() {
        Round early = enter();
        fails(5);

        assertThat(breaker.succeeded(early)).isFalse();
        assertThat(breaker.enter()).isNull();

        time.advance(CircuitBreaker.PAUSE);
        breaker.succeeded(enter());
        for (int i = 0; i < 10; i++) {
            assertThat(breaker.failed(early)).isFalse();
        }
        assertThat(breaker.enter()).isNotNull();
    }

    @Test
    void ofManyThreadsOneProbes() throws InterruptedException {
        fails(5);
        time.advance(CircuitBreaker.PAUSE);
        AtomicInteger probes = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(64);
        ExecutorService threads = Executors.newFixedThreadPool(64);
        for (int i = 0; i < 64; i++) {
            threads.execute(() -> {
                if (breaker.enter() != null) {
                    probes.incrementAndGet();
                }
                done.countDown();
            });
        }
        done.await();
        threads.shutdown();
        assertThat(probes).hasValue(1);
    }
}
