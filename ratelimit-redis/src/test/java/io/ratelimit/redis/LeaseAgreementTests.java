package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.LeasingBucketStore.Grant;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.MapBucketStore;
import io.ratelimit.Specs;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;

/**
 * Random leases, takes and give-backs under specs that both count exactly: the script grants what a store that can only
 * compare and set grants. Times in nanoseconds are rounded up to a microsecond.
 */
@Tag("slow")
class LeaseAgreementTests {

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final LeasingBucketStore script = RedisPlace.ofScripts().store(micros::get);
    private final LeasingBucketStore values = new MapBucketStore(micros::get, Duration.ofDays(3_650));
    private final List<List<Answer>> taken = new ArrayList<>();

    @RepeatedTest(100)
    void theScriptLeasesWhatAStoreOfValuesLeases(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = exactSpec(random);
        long most = Math.min(spec.timeToFull().toNanos() / 1_000 / (1 + random.nextInt(20)), 60_000_000);
        ThrottlePolicy policy = ThrottlePolicy.of("api", spec, "user").withLease(Duration.ofNanos(1_000 * most));
        for (int i = 0; i < 100; i++) {
            String step =
                    "seed %d, step %d, %s, lease %s".formatted(run.getCurrentRepetition(), i, spec, policy.lease());
            if (random.nextInt(3) == 0) {
                micros.addAndGet(Specs.upTo(
                        random.nextInt(8) == 0 ? spec.timeToFull().toNanos() / 1_000 + 1 : most + 1, random));
            }
            Charge charge = Charge.of(policy, "alice", Specs.upTo(spec.capacity(), random));
            switch (random.nextInt(4)) {
                case 0 -> lease(charge, random, step);
                case 1 -> take(charge, List.of(), step);
                case 2 -> take(charge, requests(charge, random), step);
                default -> giveBack(random);
            }
            assertThat(inMicros(script.snapshot(charge))).as(step).isEqualTo(inMicros(values.snapshot(charge)));
        }
    }

    /** Two requests for the same lease. */
    private static List<LeaseRequest> requests(Charge charge, SplittableRandom random) {
        long tokens = Specs.upTo(charge.spec().capacity(), random);
        return List.of(new LeaseRequest(charge, tokens), new LeaseRequest(charge, tokens));
    }

    private void lease(Charge charge, SplittableRandom random, String step) {
        List<LeaseRequest> both = requests(charge, random);
        assertThat(inMicros(script.lease(both.get(0)))).as(step).isEqualTo(inMicros(values.lease(both.get(1))));
        granted(both, step);
    }

    private void take(Charge charge, List<LeaseRequest> both, String step) {
        Decision byScript =
                both.isEmpty() ? script.take(List.of(charge)) : script.take(List.of(charge), both.subList(0, 1));
        Decision byValues =
                both.isEmpty() ? values.take(List.of(charge)) : values.take(List.of(charge), both.subList(1, 2));
        assertThat(numbers(byScript)).as(step).isEqualTo(numbers(byValues));
        if (byScript.allowed()) {
            taken.add(List.of(byScript.answers().get(0), byValues.answers().get(0)));
        }
        if (!both.isEmpty()) {
            granted(both, step);
        }
    }

    private void granted(List<LeaseRequest> both, String step) {
        Grant byScript = both.get(0).grant();
        Grant byValues = both.get(1).grant();
        assertThat(byScript == null).as(step).isEqualTo(byValues == null);
        if (byScript != null && byValues != null) {
            assertThat(byScript.tokens()).as(step).isEqualTo(byValues.tokens());
            assertThat(inMicros(byScript.bucket())).as(step).isEqualTo(inMicros(byValues.bucket()));
            assertThat(byScript.micros()).as(step).isEqualTo(byValues.micros());
            Charge part = both.get(0).charge().withCost(1 + byScript.tokens() / 3);
            taken.add(List.of(part(byScript, part), part(byValues, part)));
        }
    }

    private static Answer part(Grant grant, Charge part) {
        return Answer.allowed(part).withReceipt(grant.receipts().apply(part.cost()));
    }

    private void giveBack(SplittableRandom random) {
        if (!taken.isEmpty()) {
            List<Answer> back = taken.remove(random.nextInt(taken.size()));
            long cost = random.nextLong(back.get(0).charge().cost());
            script.settle(back.get(0), cost);
            values.settle(back.get(1), cost);
        }
    }

    private static BucketSpec exactSpec(SplittableRandom random) {
        BucketStore local = BucketStore.local(new ManualTimeSource());
        while (true) {
            BucketSpec spec = Specs.randomSpec(random);
            Charge charge = Charge.of(ThrottlePolicy.of("any", spec, "user"), "nobody", 1);
            if (RedisTickScale.of(spec).rate(spec).equals(spec.rate())
                    && RedisTickScale.of(spec).stepMicros() != 1_000
                    && local.snapshot(charge).rate().equals(spec.rate())
                    && spec.timeToFull().toNanos() > 100_000) {
                return spec;
            }
        }
    }

    private static List<Object> numbers(Decision decision) {
        return List.of(
                decision.outcome(),
                decision.remaining(),
                inMicros(decision.retryNanos()),
                inMicros(decision.nextTokenNanos()),
                inMicros(decision.resetNanos()));
    }

    private static List<Object> inMicros(BucketSnapshot bucket) {
        return List.of(
                bucket.available(),
                inMicros(bucket.nextTokenAfter().toNanos()),
                inMicros(bucket.resetAfter().toNanos()));
    }

    private static long inMicros(long nanos) {
        return (nanos + 999) / 1_000 * 1_000;
    }
}
