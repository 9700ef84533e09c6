package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.benmanes.caffeine.cache.Scheduler;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Buckets whose specs take turns, so that most conversions don't write to the map. */
class ConvertedBucketTests {

    private static final BucketSpec FAST = BucketSpec.of("60/1m");
    private static final BucketSpec SLOW = BucketSpec.of("60/2m");
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("plans", FAST, "user");
    private static final long SECOND = Duration.ofSeconds(1).toNanos();

    private final ManualTimeSource time = new ManualTimeSource();
    private final LocalBucketStore store = new LocalBucketStore(time);

    private static Charge charge(BucketSpec spec, long cost) {
        return new Charge(POLICY, spec, "alice", cost);
    }

    private boolean take(BucketSpec spec, long cost) {
        return store.take(List.of(charge(spec, cost))).allowed();
    }

    /** Takes a token under each of the specs in turn: the entry's life is then that of a bucket of the slow one. */
    private void takeInTurn() {
        for (BucketSpec spec : List.of(FAST, SLOW, FAST)) {
            assertThat(take(spec, 1)).isTrue();
        }
    }

    /** In each step time brings whole tokens, so no conversion cuts a fraction off. */
    @RepeatedTest(100)
    void theAnswersAreThoseOfABucketThatIsNeverForgotten(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        List<BucketSpec> specs =
                List.of(BucketSpec.of("20/1s"), BucketSpec.of("20/3m"), BucketSpec.of("20/5m"), BucketSpec.of("20/9m"));
        Duration step = Duration.ofSeconds(135);
        TokenBucket never = TokenBucket.of(specs.get(0), time);
        for (int i = 0; i < 1_000; i++) {
            BucketSpec spec = specs.get(random.nextInt(random.nextInt(4) == 0 ? 0 : 1, specs.size()));
            long cost = 1 + random.nextInt(9);
            never.reconfigure(spec);
            Decision expected = never.decide(cost);
            Decision decision = store.take(List.of(charge(spec, cost)));
            assertThat(decision.retryNanos())
                    .as(
                            "seed %d, call %d at %d s, %d of %s",
                            run.getCurrentRepetition(), i, time.nanoTime() / SECOND, cost, spec)
                    .isEqualTo(expected.retryNanos());
            assertThat(decision.remaining()).isEqualTo(expected.remaining());
            if (random.nextInt(3) == 0) {
                time.advance(step.multipliedBy(1 + random.nextInt(1 + random.nextInt(9))));
                store.size(POLICY);
            }
        }
    }

    /** Under the fast spec the bucket is short for a minute, and under the slow one for two. */
    @Test
    void aConversionToALongerHalfLifeKeepsTheEntryForLonger() {
        assertThat(take(SLOW, 60)).isTrue();
        assertThat(take(FAST, 1)).isFalse();
        time.advance(Duration.ofSeconds(30));
        assertThat(take(SLOW, 30)).isTrue();
        time.advance(Duration.ofSeconds(119));
        assertThat(store.size(POLICY)).isEqualTo(1);
        assertThat(take(SLOW, 60)).isFalse();
    }

    /** The last write to the map was under the slow spec: 126 seconds later its half-life of 122 seconds has passed. */
    @Test
    void aConversionAfterTheHalfLifeOfTheEntryKeepsItForLonger() {
        takeInTurn();
        time.advance(Duration.ofSeconds(66));
        assertThat(take(FAST, 1)).isTrue();
        time.advance(Duration.ofSeconds(60));
        assertThat(take(SLOW, 60)).isTrue();
        time.advance(Duration.ofSeconds(119));
        assertThat(take(SLOW, 60)).isFalse();
    }

    /** A state counts its age from the last write to the map, and not from its conversion. */
    @Test
    void anEntryIsRenewedInItsSecondHalfLife() {
        takeInTurn();
        assertThat(take(SLOW, 1)).isTrue();
        time.advance(Duration.ofSeconds(119));
        assertThat(take(FAST, 1)).isTrue();
        assertThat(take(SLOW, 1)).isTrue();
        time.advance(Duration.ofSeconds(119));
        assertThat(take(SLOW, 60)).isTrue();
        time.advance(Duration.ofSeconds(60));
        assertThat(take(SLOW, 60)).isFalse();
    }

    /** The second write shortens the life of the entry to that of a bucket of the fast spec. */
    @Test
    void aWriteUnderTheSameSpecCountsToo() {
        AtomicLong clock = new AtomicLong();
        PolicyBuckets buckets = buckets(10, SipHash.withRandomKey(), clock::get);
        for (BucketSpec spec : List.of(FAST, SLOW, FAST)) {
            buckets.bucket(charge(spec, 1), 0);
        }
        buckets.bucketSince(charge(FAST, 1), 0);
        clock.set(60 * SECOND);
        assertThat(buckets.bucket(charge(SLOW, 1), clock.get()).take(60, clock.get(), 0))
                .isPositive();
        clock.set(150 * SECOND);
        assertThat(buckets.size()).isEqualTo(1);
    }

    /** A debt of ten minutes at the fast rate is one of twenty minutes at the slow rate. */
    @Test
    void aBucketInDebtIsNotForgottenWhenItsSpecChanges() {
        takeInTurn();
        Decision decision = store.take(List.of(charge(FAST, 1)));
        assertThat(decision.allowed()).isTrue();
        store.settle(decision.answers().get(0), 657);
        assertThat(store.take(List.of(charge(SLOW, 1))).retryAfter()).isEqualTo(Duration.ofSeconds(1202));
        time.advance(Duration.ofSeconds(1200));
        assertThat(store.size(POLICY)).isEqualTo(1);
        assertThat(store.take(List.of(charge(SLOW, 1))).retryAfter()).isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    void aResetForgetsTheLatestState() {
        takeInTurn();
        assertThat(take(FAST, 57)).isTrue();
        store.reset(charge(FAST, 1));
        assertThat(store.size(POLICY)).isZero();
        assertThat(take(FAST, 60)).isTrue();
        assertThat(take(SLOW, 1)).isFalse();
    }

    @Test
    void anEvictionClosesTheLatestState() {
        AtomicLong clock = new AtomicLong();
        PolicyBuckets buckets = buckets(10, SipHash.withRandomKey(), clock::get);
        for (BucketSpec spec : List.of(FAST, SLOW, FAST)) {
            buckets.bucket(charge(spec, 1), 0);
        }
        BucketState held = buckets.bucket(charge(SLOW, 1), 0);
        clock.set(Duration.ofHours(3).toNanos());
        assertThat(buckets.size()).isZero();
        assertThat(held.isClosed()).isTrue();
    }

    /** A move copies the state of the overflow bucket, and with it what the states of a bucket have in common. */
    @Test
    void keysThatMovedFromOneOverflowBucketDoNotShareTheirNextStates() {
        SipHash hash = SipHash.withRandomKey();
        PolicyBuckets buckets = buckets(2, hash, () -> 0);
        String alice = key(hash, 1);
        String bob = key(hash, 1, alice);
        String carol = key(hash, 1, alice, bob);
        String known = key(hash, 2);
        String another = key(hash, 2, known);
        for (String key : List.of(known, another, alice, bob)) {
            buckets.bucket(new Charge(POLICY, FAST, key, 1), 0);
        }
        buckets.bucket(new Charge(POLICY, SLOW, carol, 1), 0);
        buckets.reset(known);
        buckets.reset(another);
        buckets.bucket(new Charge(POLICY, FAST, bob, 1), 0);
        for (BucketSpec spec : List.of(FAST, SLOW, FAST, SLOW, FAST)) {
            buckets.bucket(new Charge(POLICY, spec, alice, 1), 0);
        }

        assertThat(buckets.bucket(new Charge(POLICY, FAST, alice, 1), 0).take(60, 0, 0))
                .isPositive();
        for (BucketSpec spec : List.of(SLOW, FAST, SLOW, FAST)) {
            buckets.bucket(new Charge(POLICY, spec, bob, 1), 0);
        }
        BucketState ofBob = Objects.requireNonNull(buckets.find(new Charge(POLICY, FAST, bob, 1)));
        assertThat(ofBob.take(60, 0, 0)).isPositive();
        assertThat(buckets.size()).as("with the overflow bucket").isEqualTo(3);
        assertThat(buckets.bucket(new Charge(POLICY, SLOW, carol, 1), 0).take(60, 0, 0))
                .isPositive();
    }

    /** Returns a key, other than one of these, with this overflow bucket. */
    private static String key(SipHash hash, int overflowBucket, String... others) {
        for (int i = 0; ; i++) {
            String key = "key" + i;
            if ((hash.hash64(key) & 4095) == overflowBucket && !List.of(others).contains(key)) {
                return key;
            }
        }
    }

    private static PolicyBuckets buckets(int maxKeys, SipHash hash, TimeSource time) {
        return new PolicyBuckets(maxKeys, hash, time::nanoTime, Scheduler.disabledScheduler(), time);
    }

    /** Returns a state that was just written to a map, for a bucket that was converted. */
    private static BucketState written(BucketSpec spec, int step, long halfLife) {
        BucketState state = new BucketState(scale(spec.withCapacity(61)), 0);
        return ConvertedBucket.written(state, scale(spec), 0, () -> 0, step, halfLife);
    }

    private static TickScale scale(BucketSpec spec) {
        return TickScale.of(spec, 0);
    }

    private static @Nullable BucketState convert(BucketState state, int step, long halfLife) {
        return ConvertedBucket.convert(state, scale(SLOW), 0, () -> 0, step, halfLife);
    }

    @Test
    void theMapIsNotWrittenToForASimilarHalfLifeInTheFirstOne() {
        int steps = 1_000;
        long halfLife = (long) steps << 30;
        assertThat(convert(written(FAST, 7, halfLife), 7 + steps - 1, halfLife)).isNotNull();
        assertThat(convert(written(FAST, 7, halfLife), 7 + steps, halfLife)).isNull();
        assertThat(convert(written(FAST, 7, halfLife), 7, halfLife + 1)).isNull();
        assertThat(convert(written(FAST, 7, halfLife), 7, halfLife / 2)).isNotNull();
        assertThat(convert(written(FAST, 7, halfLife), 7, halfLife / 2 - 1)).isNull();
        assertThat(convert(written(FAST, Integer.MAX_VALUE, halfLife), Integer.MIN_VALUE, halfLife))
                .isNotNull();
    }

    @Test
    void theMapIsWrittenToForTheFirstConversionAndForABucketInDebt() {
        assertThat(convert(new BucketState(scale(FAST), 0), 0, SECOND)).isNull();
        BucketState state = written(FAST, 0, 100 * SECOND);
        assertThat(state.owe(61, false, () -> 0)).isPositive();
        assertThat(convert(state, 0, 100 * SECOND)).isNull();
        assertThat(state.isClosed()).isFalse();
        assertThat(state.giveBack(1, 0, null, 0, () -> 0)).isPositive();
        assertThat(convert(state, 0, 100 * SECOND)).isNotNull();
        assertThat(convert(state, 0, 100 * SECOND)).as("a closed state").isNull();
    }

    /** A state that the reset had missed would deny calls for ever. */
    @RepeatedTest(500)
    @Tag("slow")
    void aResetWhileThreadsConvertGivesOneCapacityMore() {
        List<BucketSpec> specs = List.of(SLOW, BucketSpec.of("120/2m").withCapacity(60));
        AtomicBoolean reset = new AtomicBoolean();
        LongAdder granted = new LongAdder();
        Threads.run(3, thread -> {
            for (int i = thread; ; i++) {
                boolean last = reset.get();
                if (take(specs.get(i % 2), 1)) {
                    granted.increment();
                } else if (last) {
                    return;
                } else if (thread == 0) {
                    store.reset(charge(SLOW, 1));
                    reset.set(true);
                }
            }
        });
        assertThat(granted.sum()).isEqualTo(120);
    }
}
