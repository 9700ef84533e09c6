package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.tuple;

import com.github.benmanes.caffeine.cache.Scheduler;
import io.ratelimit.Decision.Answer;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("slow")
class LocalBucketStoreTests extends BucketStoreContract {

    private static final int OVERFLOW_BUCKETS = 4_096;
    private static final BucketSpec SPEC = BucketSpec.of("5/1m");
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("api", SPEC, "user");

    /** A little more than twice the time to full. */
    private static final Duration LIFETIME = Duration.ofSeconds(130);

    private final ManualTimeSource time = new ManualTimeSource();
    private final LocalBucketStore store = new LocalBucketStore(time);

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration step) {
        time.advance(step);
    }

    @Override
    protected void setWallClock(Instant now) {
        time.setWallClock(now);
    }

    private boolean take(ThrottlePolicy policy, String key, long cost) {
        return store.take(List.of(Charge.of(policy, key, cost))).allowed();
    }

    private long available(ThrottlePolicy policy, String key) {
        return store.snapshot(Charge.of(policy, key, 1)).available();
    }

    @ParameterizedTest
    @CsvSource({"10/1m, GREEDY, true", "7000/1m, GREEDY, true", "30000001/1d, GREEDY, false", "10/1m, INTERVAL, false"})
    void anAnswerContainsTheMomentOfTheTakeIfTheScaleDoes(String rate, BucketSpec.Refill refill, boolean contains) {
        ThrottlePolicy policy = ThrottlePolicy.of("policy", BucketSpec.of(rate).withRefill(refill), "user");
        for (int i = 0; i < 3; i++) {
            time.advance(Duration.ofNanos(1_234_567_891));
            long taken = time.nanoTime();
            Answer answer =
                    store.take(List.of(Charge.of(policy, "alice", 1))).answers().get(0);
            time.advance(Duration.ofSeconds(1));
            assertThat(answer.takenAt(time)).isEqualTo(contains ? taken : time.nanoTime());
        }
    }

    @Test
    void theFirstCallOfAKeyFindsAFullBucketAlthoughTheClockGoesOn() {
        AtomicLong nanos = new AtomicLong();
        LocalBucketStore ticking = new LocalBucketStore(nanos::incrementAndGet);
        Decision first = ticking.take(List.of(Charge.of(POLICY, "alice", 1)));
        assertThat(first.answers().get(0).remaining()).isEqualTo(4);
    }

    @Test
    void theFirstCallOfAKeyReadsTheClockAgainIfItStoodStill() {
        AtomicLong nanos = new AtomicLong();
        long pause = Duration.ofSeconds(20).toNanos();
        LocalBucketStore pausing = new LocalBucketStore(() -> nanos.addAndGet(pause));
        long firstReading = nanos.get() + pause;
        Decision first = pausing.take(List.of(Charge.of(POLICY, "alice", 5)));
        assertThat(first.allowed()).isTrue();
        assertThat(first.answers().get(0).takenAt(nanos::get)).isGreaterThan(firstReading);
    }

    @Test
    void withoutATakeAtOnceTheMomentOfAnAnswerIsThePresent() {
        List<Charge> all = List.of(Charge.of(POLICY, "alice", 5).withMaxWait(Duration.ofMinutes(1)));
        List<Decision> decisions = List.of(store.take(all), store.reserve(all), store.take(all));
        time.advance(Duration.ofSeconds(1));
        assertThat(decisions)
                .extracting(
                        Decision::outcome, decision -> decision.answers().get(0).takenAt(time))
                .containsExactly(
                        tuple(Decision.Outcome.ALLOWED, 0L),
                        tuple(Decision.Outcome.ALLOWED, time.nanoTime()),
                        tuple(Decision.Outcome.DENIED, time.nanoTime()));
    }

    /** Of the ten keys one has a bucket of its own, and the others share overflow buckets. */
    @Test
    void eachAnswerToAKeyHasItsHash() {
        ThrottlePolicy policy = POLICY.withMaxKeys(1);
        for (int key = 0; key < 10; key++) {
            String name = "a long key that is stored as a hash of 128 bits: " + key;
            for (long cost : new long[] {3, 2, 1, 6}) {
                Answer answer = store.take(List.of(Charge.of(policy, name, cost)))
                        .answers()
                        .get(0);
                assertThat(answer.keyHash()).isEqualTo(Keys.hash(name));
                assertThat(answer.shared()).isEqualTo(key > 0);
            }
        }
    }

    /** G1 over the whole run: the answers equal those of a bucket that is never evicted. */
    @RepeatedTest(50)
    void aBucketInUseForTwentyLifetimesIsNeverForgottenWhileShort(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        TokenBucket never = TokenBucket.of(SPEC, time);
        long end = 20 * LIFETIME.toNanos();
        long longest = 1_000 + random.nextLong(LIFETIME.toMillis());
        while (time.nanoTime() < end) {
            assertThat(take(POLICY, "alice", 1))
                    .as("seed %d, at %d ns", run.getCurrentRepetition(), time.nanoTime())
                    .isEqualTo(never.tryAcquire(1));
            if (random.nextInt(3) == 0) {
                assertThat(store.size(POLICY)).isEqualTo(1);
            }
            time.advance(Duration.ofMillis(random.nextLong(longest)));
        }
    }

    /**
     * G1 if the clock moves at every reading, as for a thread that is delayed there. No interval from
     * the start of a call to the end of another has more grants than the capacity plus its refill.
     */
    @RepeatedTest(100)
    void aThreadDelayedAtAnyReadingOfTheClockGetsNoMoreThanCapacityAndRate(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        AtomicLong clock = new AtomicLong();
        LocalBucketStore held = new LocalBucketStore(
                () -> random.nextInt(3) > 0 ? clock.get() : clock.addAndGet(Specs.upTo(LIFETIME.toNanos(), random)));
        List<long[]> grants = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            long start = clock.get();
            long cost = 1 + random.nextInt(5);
            if (held.take(List.of(Charge.of(POLICY, "alice", cost))).allowed()) {
                grants.add(new long[] {start, clock.get(), cost});
            }
        }
        for (int first = 0; first < grants.size(); first++) {
            long granted = 0;
            for (int last = first; last < grants.size(); last++) {
                granted += grants.get(last)[2];
                double minutes = (grants.get(last)[1] - grants.get(first)[0]) / 60e9;
                assertThat((double) granted)
                        .as("seed %d, grants %d to %d", run.getCurrentRepetition(), first, last)
                        .isLessThanOrEqualTo(5 + 5 * minutes + 1e-6);
            }
        }
    }

    @Test
    void deniedCallsKeepABucketToo() {
        ThrottlePolicy slow = ThrottlePolicy.of("slow", BucketSpec.of("1/1h"), "user");
        assertThat(take(slow, "alice", 1)).isTrue();
        for (int i = 1; i < 60; i++) {
            time.advance(Duration.ofMinutes(1));
            assertThat(store.size(slow)).isEqualTo(1);
            assertThat(take(slow, "alice", 1)).as("minute %d", i).isFalse();
        }
        time.advance(Duration.ofMinutes(1));
        assertThat(take(slow, "alice", 1)).isTrue();
    }

    @Test
    void anIdleBucketIsDropped() {
        for (int i = 0; i < 1_000; i++) {
            take(POLICY, "user" + i, 1);
        }
        time.advance(Duration.ofSeconds(59));
        take(POLICY, "alice", 1);
        assertThat(store.size(POLICY)).isEqualTo(1_001);
        time.advance(LIFETIME.minusSeconds(59));
        take(POLICY, "bob", 1);
        assertThat(store.size(POLICY)).isEqualTo(2);
        time.advance(LIFETIME);
        take(POLICY, "bob", 1);
        assertThat(store.size(POLICY)).isEqualTo(1);
    }

    @Test
    void aDrainedKeyIsNotRefilledHoweverManyKeysAreSent() {
        ThrottlePolicy small = POLICY.withMaxKeys(1_000);
        assertThat(take(small, "alice", 5)).isTrue();
        for (int i = 0; i < 100_000; i++) {
            take(small, "sprayed" + i, 1);
        }
        assertThat(take(small, "alice", 1)).isFalse();
        assertThat(store.size(small)).isBetween(1_000L, 1_000L + OVERFLOW_BUCKETS);
    }

    @Test
    void atMaxKeysNewKeysShareTheOverflowBucketsAndOtherKeysKeepTheirs() {
        ThrottlePolicy small = POLICY.withMaxKeys(10);
        for (int i = 0; i < 10; i++) {
            assertThat(take(small, "known" + i, 2)).isTrue();
        }
        int allowed = 0;
        for (int i = 0; i < 120_000; i++) {
            allowed += take(small, "new" + i, 5) ? 1 : 0;
        }
        assertThat(allowed).isEqualTo(OVERFLOW_BUCKETS);
        assertThat(store.size(small)).isEqualTo(10 + OVERFLOW_BUCKETS);
        for (int i = 0; i < 10; i++) {
            assertThat(available(small, "known" + i)).isEqualTo(3);
            assertThat(take(small, "known" + i, 3)).isTrue();
        }
    }

    @Test
    void eachTierHasItsOwnOverflowBuckets() {
        ThrottlePolicy small = POLICY.withMaxKeys(1)
                .withTiers(Map.of("pro", BucketSpec.of("1/s").withCapacity(9)));
        take(small, "known", 1);
        for (int i = 0; i < 120_000; i++) {
            take(small, "free" + i, 5);
        }
        int allowed = 0;
        for (int i = 0; i < 120_000; i++) {
            allowed +=
                    store.take(List.of(Charge.of(small, "pro", "pro" + i, 9))).allowed() ? 1 : 0;
        }
        assertThat(allowed).isEqualTo(OVERFLOW_BUCKETS);
    }

    @Test
    void aReservedKeyNeverSharesABucket() {
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        take(small, "known", 1);
        for (int i = 0; i < 60_000; i++) {
            take(small, "new" + i, 5);
        }
        assertThat(take(small, Keys.reserved("alice"), 5)).isTrue();
        assertThat(available(small, Keys.reserved("alice"))).isZero();
        assertThat(available(small, Keys.reserved("bob"))).isEqualTo(5);
    }

    @Test
    void theSnapshotOfAKeyWithoutItsOwnBucketShowsItsOverflowBucket() {
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        take(small, "known", 1);
        assertThat(available(small, "new")).isEqualTo(5);
        assertThat(take(small, "new", 2)).isTrue();
        assertThat(available(small, "new")).isEqualTo(3);
        Decision taken = store.take(List.of(Charge.of(small, "new", 1)));
        assertThat(available(small, "new")).isEqualTo(2);
        store.giveBack(taken.answers());
        assertThat(available(small, "new")).isEqualTo(3);
    }

    @Test
    void eachAnswerShowsWhetherItsBucketIsSharedEvenIfAnotherDenies() {
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        ThrottlePolicy drained = ThrottlePolicy.of("drained", SPEC);
        take(small, "known", 1);
        take(small, "new", 1);
        take(drained, "", 5);

        assertThat(isShared(small, "new", drained)).isTrue();
        assertThat(isShared(small, "known", drained)).isFalse();
        assertThat(isShared(small, Keys.reserved("new"), drained)).isFalse();
        store.reset(Charge.of(small, "known", 1));
        assertThat(isShared(small, "new", drained)).as("there is room now").isFalse();
    }

    private boolean isShared(ThrottlePolicy policy, String key, ThrottlePolicy drained) {
        Decision denied = store.take(List.of(Charge.of(drained, "", 1), Charge.of(policy, key, 1)));
        assertThat(denied.denials()).extracting(Answer::policy).containsExactly(drained);
        return denied.answers().get(1).shared();
    }

    @Test
    void thereIsRoomForNewKeysWhenIdleOnesAreGone() {
        ThrottlePolicy small = POLICY.withMaxKeys(10);
        for (int i = 0; i < 10; i++) {
            take(small, "old" + i, 5);
        }
        time.advance(LIFETIME);
        for (int i = 0; i < 10; i++) {
            assertThat(take(small, "new" + i, 5)).as("new key %d", i).isTrue();
        }
        assertThat(store.size(small)).isEqualTo(10);
    }

    @Test
    void theOverflowBucketsTakeNoRoomFromKeys() {
        ThrottlePolicy small = POLICY.withMaxKeys(10);
        for (int i = 0; i < 10; i++) {
            take(small, "old" + i, 5);
        }
        time.advance(LIFETIME.minusSeconds(10));
        for (int i = 0; i < 40_000; i++) {
            take(small, "flood" + i, 5);
        }
        time.advance(Duration.ofSeconds(10));
        long shared = store.size(small);
        for (int i = 0; i < 10; i++) {
            take(small, "new" + i, 1);
        }
        assertThat(store.size(small)).isEqualTo(shared + 10);
        take(small, "one more", 1);
        assertThat(store.size(small)).isEqualTo(shared + 10);
    }

    @Test
    void aThreadThatHoldsAnEvictedBucketLooksTheKeyUpAgain() {
        AtomicLong clock = new AtomicLong();
        PolicyBuckets buckets =
                new PolicyBuckets(10, SipHash.withRandomKey(), clock::get, Scheduler.disabledScheduler(), clock::get);
        Charge charge = Charge.of(POLICY, "alice", 1);
        BucketState held = buckets.bucket(charge, clock.get());
        assertThat(held.take(5, clock.get(), 0)).isPositive();
        clock.set(LIFETIME.toNanos());
        assertThat(buckets.size()).isZero();
        assertThat(held.take(1, clock.get(), 0)).isEqualTo(BucketState.CLOSED);
        BucketState found = buckets.bucket(charge, clock.get());
        assertThat(found).isNotSameAs(held);
        assertThat(found.take(1, clock.get(), 0)).isPositive();
    }

    @Test
    void aThreadThatHoldsAResetOrConvertedBucketLooksTheKeyUpAgain() {
        PolicyBuckets buckets =
                new PolicyBuckets(10, SipHash.withRandomKey(), () -> 0, Scheduler.disabledScheduler(), () -> 0);
        Charge charge = Charge.of(POLICY, "alice", 1);
        BucketState forgotten = buckets.bucket(charge, 0);
        buckets.reset("alice");
        assertThat(forgotten.take(1, 0, 0)).isEqualTo(BucketState.CLOSED);
        assertThat(forgotten.peek(1, 0, 0)).isEqualTo(BucketState.CLOSED);
        BucketState reopened = buckets.bucket(charge, 0);
        buckets.bucket(new Charge(POLICY, SPEC.withCapacity(7), "alice", 1), 0);
        assertThat(reopened.take(1, 0, 0)).isEqualTo(BucketState.CLOSED);
    }

    @Test
    void aGiveBackUnderAnOldSpecDoesNotBringItBack() {
        BucketSpec raised = BucketSpec.of("100/1m");
        assertThat(take(POLICY, "alice", 2)).isTrue();
        Charge underRaised = new Charge(POLICY, raised, "alice", 1);
        assertThat(store.take(List.of(underRaised)).remaining()).isEqualTo(2);
        time.advance(Duration.ofMinutes(1));
        store.giveBack(Specs.taken(Charge.of(POLICY, "alice", 2)));
        assertThat(store.snapshot(underRaised).available()).isEqualTo(100);
        assertThat(store.take(List.of(new Charge(POLICY, raised, "alice", 50))).remaining())
                .isEqualTo(50);
    }

    @Test
    void givingBackToAKeyThatIsNotKnownKeepsNothing() {
        store.giveBack(Specs.taken(Charge.of(POLICY, "alice", 1)));
        assertThat(store.size(POLICY)).isZero();
    }

    @Test
    void aDeniedCallCreatesNoBucketsForKeysItOnlyPeekedAt() {
        ThrottlePolicy global = ThrottlePolicy.of("global", SPEC);
        assertThat(take(global, "", 5)).isTrue();
        Decision decision = store.take(List.of(Charge.of(global, "", 1), Charge.of(POLICY, "alice", 1)));
        assertThat(decision.answers().get(1).remaining()).isEqualTo(5);
        assertThat(store.size(POLICY)).isZero();
    }

    @Test
    void aKeyThatDrainedItsOverflowBucketIsNotRefilledWhenItGetsItsOwnBucket() {
        ThrottlePolicy small =
                ThrottlePolicy.of("small", BucketSpec.of("20/1h"), "user").withMaxKeys(10);
        for (int i = 0; i < 10; i++) {
            store.take(List.of(Charge.of(small, "junk" + i, 1)));
        }
        time.advance(Duration.ofHours(2));
        for (int i = 0; i < 20; i++) {
            store.take(List.of(Charge.of(small, "greedy", 1)));
        }
        time.advance(Duration.ofMinutes(1));
        assertThat(store.size(small)).isEqualTo(1);

        assertThat(store.snapshot(Charge.of(small, "greedy", 1)).available()).isZero();
        assertThat(store.take(List.of(Charge.of(small, "greedy", 1))).allowed()).isFalse();
    }

    /** G1 while several threads use a key that moves from an overflow bucket to its own. */
    @Test
    void aKeyThatMovesToItsOwnBucketDuringConcurrentCallsIsGrantedNoMore() {
        ThrottlePolicy small =
                ThrottlePolicy.of("small", BucketSpec.of("200/1h"), "user").withMaxKeys(1);
        for (int round = 0; round < 3_000; round++) {
            LocalBucketStore fresh = new LocalBucketStore(time);
            fresh.take(List.of(Charge.of(small, "known", 1)));
            fresh.take(List.of(Charge.of(small, "greedy", 1)));
            LongAdder granted = new LongAdder();
            Threads.run(4, thread -> {
                if (thread == 0) {
                    fresh.reset(Charge.of(small, "known", 1));
                }
                for (int i = 0; i < 40; i++) {
                    granted.add(
                            fresh.take(List.of(Charge.of(small, "greedy", 1))).allowed() ? 1 : 0);
                }
            });
            long left = fresh.snapshot(Charge.of(small, "greedy", 1)).available();
            assertThat(granted.sum() + left).as("round %d", round).isEqualTo(199);
        }
    }

    @Test
    void tokensGivenBackWhileAKeyMovesToItsOwnBucketAreNeitherLostNorDoubled() {
        ThrottlePolicy small =
                ThrottlePolicy.of("small", BucketSpec.of("40/1h"), "user").withMaxKeys(1);
        for (int round = 0; round < 1_000; round++) {
            LocalBucketStore fresh = new LocalBucketStore(time);
            fresh.take(List.of(Charge.of(small, "known", 1)));
            fresh.take(List.of(Charge.of(small, "greedy", 1)));
            LongAdder granted = new LongAdder();
            Threads.run(3, thread -> {
                for (int i = 0; i < 20; i++) {
                    if (thread == 0 && i == 10) {
                        fresh.reset(Charge.of(small, "known", 1));
                    }
                    Decision decision = fresh.take(List.of(Charge.of(small, "greedy", 1)));
                    if (i % 2 == 0) {
                        fresh.giveBack(decision.taken());
                    } else {
                        granted.add(decision.allowed() ? 1 : 0);
                    }
                }
            });
            assertThat(fresh.snapshot(Charge.of(small, "greedy", 1)).available())
                    .as("round %d", round)
                    .isEqualTo(39 - granted.sum());
        }
    }

    @Test
    void tokensOfAForgottenKeyDoNotGoBackToASharedBucket() {
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        Decision taken = store.take(List.of(Charge.of(small, "alice", 3)));
        store.reset(Charge.of(small, "alice", 1));
        take(small, "known", 1);
        assertThat(take(small, "alice", 5)).as("of the shared bucket").isTrue();

        store.giveBack(taken.answers());

        assertThat(take(small, "alice", 1)).isFalse();
    }

    @Test
    void tokensOfASharedBucketDoNotComeBackToABucketThatWasResetSince() {
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        take(small, "known", 1);
        Decision taken = store.take(List.of(Charge.of(small, "alice", 3)));
        store.reset(Charge.of(small, "known", 1));
        assertThat(available(small, "alice")).isEqualTo(2);
        assertThat(take(small, "alice", 1)).as("of its own").isTrue();
        store.reset(Charge.of(small, "alice", 1));
        assertThat(take(small, "alice", 4)).isTrue();

        store.giveBack(taken.answers());

        assertThat(available(small, "alice")).isEqualTo(1);
    }

    @Test
    void aResetKeyIsFullEvenIfItHadLeftADrainedOverflowBucket() {
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        take(small, "known", 1);
        assertThat(take(small, "alice", 5)).as("of the shared bucket").isTrue();
        store.reset(Charge.of(small, "known", 1));
        assertThat(take(small, "alice", 1)).as("of its own").isFalse();

        store.reset(Charge.of(small, "alice", 1));

        assertThat(available(small, "alice")).isEqualTo(5);
        assertThat(take(small, "alice", 5)).isTrue();
        assertThat(take(small, "alice", 1)).isFalse();
    }

    @Test
    void tokensOfASharedBucketComeBackToTheKeysOwnUnderAnyLaterLimit() {
        ThrottlePolicy small = POLICY.withMaxKeys(1);
        take(small, "known", 1);
        Decision taken = store.take(List.of(Charge.of(small, "alice", 5)));
        store.reset(Charge.of(small, "known", 1));
        ThrottlePolicy changed = small.withSpec(BucketSpec.of("5/2m"));
        assertThat(take(changed, "alice", 1)).isFalse();

        store.giveBack(taken.answers());

        assertThat(available(changed, "alice")).isEqualTo(5);
    }

    @Test
    void aSlowRateForAMomentKeepsOnlyTheKeysThatStillCountByIt() {
        Charge slow = new Charge(POLICY, BucketSpec.of("2/365d"), "bob", 1);
        assertThat(take(POLICY, "alice", 1)).isTrue();
        assertThat(store.take(List.of(slow)).allowed()).isTrue();
        store.take(List.of(new Charge(POLICY, BucketSpec.of("2/365d"), "alice", 1)));
        assertThat(take(POLICY, "alice", 1)).as("back under the fast rate").isTrue();
        take(POLICY, "carol", 1);

        time.advance(LIFETIME);

        assertThat(store.size(POLICY)).isEqualTo(1);
        time.advance(Duration.ofDays(100));
        assertThat(store.snapshot(slow).available()).isEqualTo(1);
    }

    @Test
    void aLongWaitKeepsOnlyTheBucketInDebt() {
        ThrottlePolicy patient = ThrottlePolicy.of("patient", BucketSpec.of("1/1h"), "user");
        take(patient, "alice", 1);
        take(patient, "bob", 1);
        for (int hour = 1; hour <= 20; hour++) {
            assertThat(reserve(patient, "alice", 1, Duration.ofHours(20)).allowed())
                    .isTrue();
        }
        time.advance(Duration.ofHours(3));
        assertThat(store.size(patient)).isEqualTo(1);
        time.advance(Duration.ofHours(17));
        assertThat(store.size(patient)).isEqualTo(1);
        assertThat(take(patient, "alice", 1)).isFalse();
        time.advance(Duration.ofHours(4));
        assertThat(store.size(patient)).isZero();
    }

    @Test
    void lookingKeepsNothing() {
        store.snapshot(Charge.of(POLICY, "alice", 1));
        assertThat(store.size(POLICY)).isZero();
    }

    @Test
    void keysOfAnyLengthAreDistinct() {
        for (int length : new int[] {46, 47, 48, 49, 50, 5_000}) {
            for (int i = 0; i < 500; i++) {
                String key = "x".repeat(length - 3) + (100 + i);
                assertThat(take(POLICY, key, 5)).as(key).isTrue();
                assertThat(take(POLICY, key, 1)).as(key).isFalse();
            }
        }
    }

    @Test
    void aLongKeyIsNotKept() {
        WeakReference<String> key = takeWithALongKey();
        for (int i = 0; i < 50 && key.get() != null; i++) {
            System.gc();
        }
        assertThat(key.get()).isNull();
        assertThat(store.size(POLICY)).isEqualTo(1);
    }

    private WeakReference<String> takeWithALongKey() {
        String key = "x".repeat(1_000_000);
        take(POLICY, key, 1);
        return new WeakReference<>(key);
    }

    @Test
    void keysWithCollidingHashCodesAreNoSlower() {
        List<String> keys = new ArrayList<>(List.of(""));
        while (keys.size() < 16_000) {
            List<String> longer = new ArrayList<>();
            keys.forEach(key -> longer.addAll(List.of(key + "Aa", key + "BB")));
            keys = longer;
        }
        List<String> colliding = keys;
        assertThat(colliding).allMatch(key -> key.hashCode() == colliding.get(0).hashCode());
        long before = Threads.cpuNanos();
        for (int round = 0; round < 2; round++) {
            for (String key : colliding) {
                assertThat(take(POLICY, key, 3)).isEqualTo(round == 0);
            }
        }
        assertThat(Threads.cpuNanos() - before).isLessThan(Duration.ofSeconds(5).toNanos());
    }

    @Test
    void tokensSurviveASpecThatChangesAllTheTime() {
        BucketSpec one = BucketSpec.of("1/1h").withCapacity(50_000);
        BucketSpec other = BucketSpec.of("7/1h").withCapacity(50_000);
        LongAdder granted = new LongAdder();
        LongAdder denied = new LongAdder();
        Threads.run(4, thread -> {
            for (int i = 0; i < 20_000; i++) {
                List<Charge> charges = List.of(new Charge(POLICY, (i + thread) % 2 == 0 ? one : other, "alice", 1));
                Decision decision = store.take(charges);
                if (!decision.allowed()) {
                    denied.increment();
                } else if (i % 4 > 0) {
                    store.giveBack(decision.answers());
                } else {
                    granted.increment();
                }
            }
        });
        assertThat(denied.sum()).isZero();
        assertThat(granted.sum()
                        + store.snapshot(new Charge(POLICY, one, "alice", 1)).available())
                .isEqualTo(50_000);
    }

    @Test
    void aDenialKnowsItsRetryTimeHoweverTheSpecChanges() {
        BucketSpec[] specs = {BucketSpec.of("1/1h"), BucketSpec.of("2/1h")};
        Threads.run(4, thread -> {
            for (int i = 0; i < 20_000; i++) {
                Decision decision = store.take(List.of(new Charge(POLICY, specs[(i + thread) % 2], "alice", 1)));
                assertThat(decision.allowed() || decision.retryNanos() > 0).isTrue();
            }
        });
    }

    @Test
    void eachForgettingGrantsOneCapacityAtMost() {
        ThrottlePolicy policy =
                ThrottlePolicy.of("forgotten", BucketSpec.of("1/1h").withCapacity(100), "user");
        AtomicBoolean done = new AtomicBoolean();
        LongAdder granted = new LongAdder();
        LongAdder forgotten = new LongAdder();
        Threads.run(4, thread -> {
            if (thread == 0) {
                while (!done.get()) {
                    store.reset(Charge.of(policy, "alice", 1));
                    forgotten.increment();
                }
                return;
            }
            for (int i = 0; i < 50_000; i++) {
                granted.add(take(policy, "alice", 1) ? 1 : 0);
            }
            done.set(true);
        });
        assertThat(granted.sum()).isLessThanOrEqualTo(100 * (forgotten.sum() + 1));
    }

    /** G1 while time passes, buckets expire and are evicted, and other threads take. */
    @Test
    void threadsGetNoMoreThanCapacityAndRateWhileBucketsComeAndGo() {
        AtomicBoolean done = new AtomicBoolean();
        LongAdder granted = new LongAdder();
        Threads.run(4, thread -> {
            if (thread == 0) {
                for (int i = 0; i < 3_000; i++) {
                    time.advance(Duration.ofSeconds(7 + i % 50));
                    store.size(POLICY);
                }
                done.set(true);
                return;
            }
            while (!done.get()) {
                granted.add(take(POLICY, "alice", 1) ? 1 : 0);
            }
        });
        long perMinute = 5;
        long minutes = time.nanoTime() / Duration.ofMinutes(1).toNanos() + 1;
        assertThat(granted.sum()).isLessThanOrEqualTo(5 + perMinute * minutes);
    }

    @Test
    void aStoreWhoseClockStartsAnywhereWorks() {
        for (long start : new long[] {Long.MIN_VALUE, -1, Long.MAX_VALUE - 1, Long.MAX_VALUE}) {
            AtomicLong clock = new AtomicLong(start);
            BucketStore anywhere = BucketStore.local(clock::get);
            List<Charge> charges = List.of(Charge.of(POLICY, "alice", 5));
            for (int i = 0; i < 100; i++) {
                assertThat(anywhere.take(charges).allowed())
                        .as("round %d from %d", i, start)
                        .isTrue();
                assertThat(anywhere.take(charges).retryAfter()).isEqualTo(Duration.ofMinutes(1));
                clock.addAndGet(Duration.ofMinutes(1).toNanos());
            }
        }
    }

    @Test
    void aCallDelayedAfterReadingTheClockIsNotDeniedAvailableTokens() {
        HeldUpTimeSource clock = new HeldUpTimeSource(Duration.ZERO);
        BucketStore held = BucketStore.local(clock);
        clock.holdUpNextReader(Duration.ofSeconds(5), () -> {
            assertThat(held.take(List.of(Charge.of(POLICY, "alice", 4))).allowed())
                    .isTrue();
        });
        assertThat(held.take(List.of(Charge.of(POLICY, "alice", 1))).allowed()).isTrue();
        assertThat(held.take(List.of(Charge.of(POLICY, "alice", 1))).allowed()).isFalse();
    }

    private Decision reserve(ThrottlePolicy policy, String key, long cost, Duration maxWait) {
        return store.reserve(List.of(Charge.of(policy, key, cost).withMaxWait(maxWait)));
    }

    /** A bucket with an hour to full and ten hours of debt, used again only in the last hour. */
    @Test
    void aBucketIsNotForgottenWhileItIsInDebt() {
        ThrottlePolicy slow = ThrottlePolicy.of("slow", BucketSpec.of("1/1h"), "user");
        assertThat(take(slow, "alice", 1)).isTrue();
        for (int hour = 1; hour <= 10; hour++) {
            assertThat(reserve(slow, "alice", 1, Duration.ofHours(10)).waitFor())
                    .isEqualTo(Duration.ofHours(hour));
        }
        time.advance(Duration.ofHours(10));
        assertThat(store.size(slow)).isEqualTo(1);
        assertThat(take(slow, "alice", 1)).isFalse();
        time.advance(Duration.ofHours(1));
        assertThat(take(slow, "alice", 1)).isTrue();
    }

    @Test
    void anOverflowBucketIsNotForgottenWhileItIsInDebt() {
        ThrottlePolicy small =
                ThrottlePolicy.of("small", BucketSpec.of("1/1h"), "user").withMaxKeys(1);
        take(small, "known", 1);
        assertThat(take(small, "new", 1)).isTrue();
        assertThat(reserve(small, "new", 1, Duration.ofHours(9)).waitFor()).isEqualTo(Duration.ofHours(1));
        assertThat(reserve(small, "new", 1, Duration.ofHours(9)).waitFor()).isEqualTo(Duration.ofHours(2));
        for (int i = 0; i < 5; i++) {
            reserve(small, "new", 1, Duration.ofHours(9));
        }
        time.advance(Duration.ofHours(6));
        assertThat(store.snapshot(Charge.of(small, "new", 1)).resetAfter()).isEqualTo(Duration.ofHours(2));
        assertThat(take(small, "new", 1)).isFalse();
    }

    @Test
    void aBucketInDebtIsNotForgottenWhenItsSpecChanges() {
        ThrottlePolicy slow = ThrottlePolicy.of("slow", BucketSpec.of("1/1h"), "user");
        assertThat(take(slow, "alice", 1)).isTrue();
        assertThat(reserve(slow, "alice", 1, Duration.ofHours(1)).allowed()).isTrue();
        Charge slower = new Charge(slow, BucketSpec.of("1/5h"), "alice", 1);
        assertThat(store.take(List.of(slower)).retryAfter()).isEqualTo(Duration.ofHours(6));
        time.advance(Duration.ofHours(6).minusNanos(1));
        assertThat(store.size(slow)).isEqualTo(1);
        assertThat(store.take(List.of(slower)).retryAfter()).isEqualTo(Duration.ofNanos(1));
    }

    /** A caller with an unlimited wait must not keep every key of the policy for years. */
    @Test
    void aBucketIsKeptForTheActualWaitAndNotForTheLongestAllowed() {
        assertThat(take(POLICY, "alice", 5)).isTrue();
        assertThat(reserve(POLICY, "alice", 1, ThrottlePolicy.LONGEST_WAIT).waitFor())
                .isEqualTo(Duration.ofSeconds(12));
        time.advance(LIFETIME.plusMinutes(1));
        assertThat(store.size(POLICY)).isZero();
    }

    /** Ticks of different specs can't be compared, so a receipt only counts for its own spec. */
    @Test
    void aReceiptFromBeforeTwoChangesBreaksNoPromise() {
        BucketSpec slow = BucketSpec.of("1/10s").withCapacity(10);
        BucketSpec fast = BucketSpec.of("10/1s").withCapacity(10);
        Decision first = drainAndReserve(slow, 5);
        assertThat(first.waitFor()).isEqualTo(Duration.ofSeconds(50));
        assertThat(reserve(fast, 10).waitFor()).isEqualTo(Duration.ofSeconds(51));
        assertThat(reserve(slow, 1).waitFor()).isEqualTo(Duration.ofSeconds(61));
        store.giveBack(first.answers());
        assertThat(reserve(slow, 1).waitFor()).isEqualTo(Duration.ofSeconds(71));
    }

    private Decision drainAndReserve(BucketSpec spec, long cost) {
        assertThat(store.take(List.of(new Charge(POLICY, spec, "alice", spec.capacity())))
                        .allowed())
                .isTrue();
        return reserve(spec, cost);
    }

    private Decision reserve(BucketSpec spec, long cost) {
        return store.reserve(List.of(new Charge(POLICY, spec, "alice", cost, Duration.ofDays(1))));
    }

    /** If the clock were read too early, later takes of other threads would look like a debt. */
    @Test
    void aCallDelayedAfterReadingTheClockGivesBackAllThatTimeHasNotBrought() {
        HeldUpTimeSource clock = new HeldUpTimeSource(Duration.ZERO);
        BucketStore held = BucketStore.local(clock);
        Decision taken = held.take(List.of(Charge.of(POLICY, "alice", 5)));
        clock.holdUpNextReader(Duration.ofSeconds(24), () -> {
            assertThat(held.take(List.of(Charge.of(POLICY, "alice", 2))).allowed())
                    .isTrue();
        });
        held.giveBack(taken.answers());
        assertThat(held.snapshot(Charge.of(POLICY, "alice", 1)).available()).isEqualTo(3);
    }

    @Test
    void theCallersListMayBeOfAnyKind() {
        List<Charge> charges = new ArrayList<>(List.of(Charge.of(POLICY, "alice", 1)));
        Decision decision = store.take(charges);
        charges.clear();
        assertThat(decision.answers()).hasSize(1);
        assertThatCode(() -> store.giveBack(List.of())).doesNotThrowAnyException();
    }
}
