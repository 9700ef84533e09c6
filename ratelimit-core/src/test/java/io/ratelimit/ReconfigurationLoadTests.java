package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.benmanes.caffeine.cache.Scheduler;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Policies that change very often while many threads take. */
@Tag("slow")
class ReconfigurationLoadTests {

    private static final int THREADS = 4;
    private static final BucketSpec FIRST = BucketSpec.of("3/1s").withCapacity(20_000);
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("api", FIRST, "user");

    /** Time stands still, so there are only the initial tokens. */
    @RepeatedTest(10)
    void noTokenIsAddedOrLostWhileCallsUnderOldAndNewSpecsTakeTurns() {
        ManualTimeSource time = new ManualTimeSource();
        Throttlers throttlers = Throttlers.local(List.of(POLICY), time);
        Throttler alice = throttlers.get("api").forKey("alice");
        Charge old = alice.charge(1);
        assertThat(alice.tryAcquire(1)).isTrue();
        AtomicBoolean drained = new AtomicBoolean();
        LongAdder granted = new LongAdder();
        Threads.run(THREADS + 1, thread -> {
            for (int i = 0; thread == 0 && !drained.get(); i++) {
                throttlers
                        .get("api")
                        .reconfigure(BucketSpec.of((7 + i % 13) + "/1m").withCapacity(20_000 + i % 5));
            }
            while (thread > 0 && !drained.get()) {
                boolean allowed = thread == 1
                        ? throttlers.decide(List.of(old)).allowed()
                        : alice.decide(1).allowed();
                granted.add(allowed ? 1 : 0);
                drained.compareAndSet(false, !allowed);
            }
        });
        assertThat(granted.sum()).isEqualTo(19_999);
    }

    /** G1 for the greatest capacity and rate that were in force; and not much less than for the smallest. */
    @RepeatedTest(10)
    void overChangesOfRateTheGreaterOneCounts(RepetitionInfo run) {
        AtomicLong clock = new AtomicLong();
        long end = Duration.ofSeconds(20).toNanos();
        Throttlers throttlers = Throttlers.local(
                List.of(ThrottlePolicy.of("api", BucketSpec.of("1000/1s").withCapacity(10), "user")), clock::get);
        Throttler alice = throttlers.get("api").forKey("alice");
        Charge old = alice.charge(1);
        LongAdder granted = new LongAdder();
        Threads.run(THREADS, thread -> {
            var random = new SplittableRandom(run.getCurrentRepetition() * 31L + thread);
            while (clock.addAndGet(random.nextInt(20_000)) < end) {
                if (thread == 0) {
                    throttlers.get("api").reconfigure(between(random));
                }
                boolean allowed = thread == 1 ? throttlers.decide(List.of(old)).allowed() : alice.tryAcquire(1);
                granted.add(allowed ? 1 : 0);
            }
        });
        assertThat(granted.sum()).isBetween(20 * 1000L, 50 + 20 * 3000L + 1);
    }

    private static BucketSpec between(SplittableRandom random) {
        return BucketSpec.of(Rate.of(1000 + random.nextInt(2001) + "/1s")).withCapacity(10 + random.nextInt(41));
    }

    @Test
    void twoConcurrentChangesAreReportedInTurnAndTheLastOneHolds() {
        List<ThrottlePolicy> reported = new ArrayList<>();
        ThrottleListener listener = new ThrottleListener() {
            @Override
            public void decided(Decision decision) {}

            @Override
            public @Nullable PolicyListener added(PolicyThrottler throttler) {
                reported.add(throttler.policy());
                return null;
            }

            @Override
            public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
                assertThat(before).isSameAs(reported.get(reported.size() - 1));
                reported.add(after);
            }
        };
        ManualTimeSource time = new ManualTimeSource();
        Throttlers throttlers = new Throttlers(List.of(POLICY), BucketStore.local(time), time, listener);
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 1_000; i++) {
                throttlers.get("api").reconfigure(FIRST.withCapacity(1 + 1_000 * thread + i));
            }
        });
        assertThat(reported).hasSize(1 + 1_000 * THREADS);
        assertThat(throttlers.get("api").policy()).isSameAs(reported.get(reported.size() - 1));
    }

    /** An application that tunes its rate every second for twelve days. */
    @Test
    void aMillionChangesLeaveNothingBehind() {
        AtomicLong clock = new AtomicLong();
        PolicyBuckets buckets =
                new PolicyBuckets(10, SipHash.withRandomKey(), clock::get, Scheduler.disabledScheduler(), clock::get);
        for (int i = 1; i <= 1_000_000; i++) {
            Charge charge = new Charge(POLICY, FIRST.withCapacity(i), "alice", 1);
            assertThat(buckets.bucket(charge, clock.incrementAndGet()).take(1, clock.get(), 0))
                    .isNotEqualTo(BucketState.CLOSED);
        }
        assertThat(buckets.size()).isEqualTo(1);
        forgetSpecs(buckets);
    }

    /** Tokens taken ahead under a spec are given back correctly even if its scale was dropped meanwhile. */
    @Test
    void aSpecThatComesBackCountsFromTheSameMoment() {
        PolicyBuckets buckets =
                new PolicyBuckets(10, SipHash.withRandomKey(), () -> 9, Scheduler.disabledScheduler(), () -> 9);
        BucketSpec spec = BucketSpec.of("1/1s");
        Charge charge = new Charge(POLICY, spec, "alice", 1);
        Charge other = new Charge(POLICY, BucketSpec.of("2/1s"), "alice", 1);
        long moment = Duration.ofSeconds(100).toNanos() + 1;
        long position = buckets.bucket(charge, 7).scale().at(moment);
        buckets.bucket(other, 8);
        forgetSpecs(buckets);
        assertThat(buckets.bucket(charge, 9).scale().at(moment)).isEqualTo(position);
    }

    private static void forgetSpecs(PolicyBuckets buckets) {
        Threads.await(() -> {
            System.gc();
            return buckets.specs() == 1;
        });
    }
}
