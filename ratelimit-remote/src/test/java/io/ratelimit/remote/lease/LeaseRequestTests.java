package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.lease.LeaseMemoryTests.Granting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Which calls request a lease, and what others of the same key do meanwhile. */
class LeaseRequestTests {

    private static final Duration LEASE = Duration.ofMillis(50);
    private static final Charge CHARGE =
            Charge.of(ThrottlePolicy.of("api", BucketSpec.of("1000/1s"), "user").withLease(LEASE), "alice", 1);

    private final ManualTimeSource time = new ManualTimeSource();
    private final CountDownLatch waiting = new CountDownLatch(1);
    private final List<Long> asked = new ArrayList<>();
    private final Leases leases = new Leases(time, new Granting(), Runnable::run, this::await, Runnable::run);

    private void await(Future<?> request) {
        waiting.countDown();
        try {
            request.get(1, TimeUnit.MINUTES);
        } catch (Exception failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** Makes a call, and notes how many tokens each of its requests is for. */
    private Decision take() {
        return leases.take(List.of(CHARGE), this::takeFromStore);
    }

    private Decision takeFromStore(List<Charge> charges, List<LeaseRequest> requests) {
        requests.forEach(request -> asked.add(request.maxTokens()));
        return leases.takeFromStore(charges, requests);
    }

    @Test
    void aKeyThatIsCalledLessThanFourTimesInALeaseRequestsNone() {
        for (int i = 0; i < 5; i++) {
            take();
            time.advance(LEASE.dividedBy(4).plusNanos(1_000));
        }
        assertThat(asked).isEmpty();
    }

    @Test
    void aKeyThatIsCalledSixTimesInALeaseRequestsTwiceTheTokens() {
        for (int i = 0; i < 3; i++) {
            take();
            time.advance(LEASE.dividedBy(6));
        }
        assertThat(asked).containsExactly(2L);
    }

    /** Requests for eight tokens or more are made in the background; a forgotten bucket would begin anew. */
    @Test
    void aBucketWithRequestsIsNotForgotten() {
        for (int i = 0; i < 200; i++) {
            take();
            time.advance(LEASE.dividedBy(40));
        }
        assertThat(asked).containsExactly(2L, 4L);
    }

    /** A thread that can't be started, for example. */
    @Test
    void aRenewalThatCannotBeStartedFailsNoCallAndIsTriedAgain() {
        AtomicInteger started = new AtomicInteger();
        Leases failing = new Leases(time, new Granting(), Runnable::run, this::await, renewal -> {
            if (started.getAndIncrement() == 0) {
                throw new Error("no thread");
            }
            renewal.run();
        });
        for (int i = 0; i < 200; i++) {
            assertThat(failing.take(List.of(CHARGE), failing::takeFromStore).allowed())
                    .isTrue();
            time.advance(LEASE.dividedBy(40));
        }
        assertThat(started).hasValueGreaterThan(1);
    }

    @Test
    void tokensOfTwoLeasesPayOneCall() {
        for (int i = 0; i < 4; i++) {
            take();
        }
        long first = leases.tokens(CHARGE.policy());
        assertThat(first).isPositive();
        leases.take(List.of(CHARGE.withCost(first + 1)), this::takeFromStore);
        long both = leases.tokens(CHARGE.policy());
        assertThat(both).isGreaterThan(first);
        asked.clear();
        assertThat(leases.take(List.of(CHARGE.withCost(both)), this::takeFromStore)
                        .allowed())
                .isTrue();
        assertThat(asked).isEmpty();
    }

    @Test
    void theSecondCallSoonAfterTheFirstRequestsALeaseOfTwiceTheTokens() {
        take();
        time.advance(Duration.ofMillis(5));
        take();
        assertThat(asked).containsExactly(2L);
        assertThat(leases.tokens(CHARGE.policy())).isEqualTo(1);
    }

    @Test
    void aForgottenKeyBeginsAnew() {
        take();
        take();
        leases.forget(CHARGE);
        asked.clear();
        take();
        assertThat(asked).isEmpty();
    }

    /** The first thread's call is answered only when the second thread waits for it. */
    @Test
    void aThreadWithoutTokensWaitsForTheRequestOfAnother() throws Exception {
        take();
        CountDownLatch calling = new CountDownLatch(1);
        CompletableFuture<Decision> first =
                CompletableFuture.supplyAsync(() -> leases.take(List.of(CHARGE), (charges, requests) -> {
                    calling.countDown();
                    awaitSecond();
                    return leases.takeFromStore(charges, requests);
                }));
        calling.await();
        Decision second = leases.take(List.of(CHARGE), (charges, requests) -> {
            throw new AssertionError("called the store");
        });
        assertThat(second.allowed()).isTrue();
        assertThat(first.get(1, TimeUnit.MINUTES).allowed()).isTrue();
    }

    private void awaitSecond() {
        try {
            assertThat(waiting.await(1, TimeUnit.MINUTES)).isTrue();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
