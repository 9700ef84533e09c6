package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers.UnknownPolicyException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Changes of policies at run time. */
class ReconfigurationTests {

    private static final BucketSpec SLOW = BucketSpec.of("5/1d");
    private static final BucketSpec FAST = BucketSpec.of("5/1m");
    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", BucketSpec.of("10/s"));
    private static final ThrottlePolicy USER = ThrottlePolicy.of("per-user", SLOW, "user")
            .withTiers(Map.of("pro", BucketSpec.of("9/1d"), "team", BucketSpec.of("7/1d")));

    private final ManualTimeSource time = new ManualTimeSource();
    private final List<List<ThrottlePolicy>> reported = new ArrayList<>();
    private final Throttlers throttlers =
            new Throttlers(List.of(GLOBAL, USER), BucketStore.local(time), time, new Told());

    private final class Told implements ThrottleListener {

        @Override
        public void decided(Decision decision) {}

        @Override
        public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
            reported.add(List.of(before, after));
        }
    }

    @Test
    void allKeysFollowAtTheirNextUseAlsoThroughExistingThrottlers() {
        Throttler alice = throttlers.get("per-user").forKey("alice");
        Throttler bob = throttlers.get("per-user").forKey("bob");
        assertThat(alice.tryAcquire(5)).isTrue();
        assertThat(bob.tryAcquire(3)).isTrue();

        throttlers.get("per-user").reconfigure(FAST.withCapacity(6));

        assertThat(alice.decide(1).retryAfter()).isEqualTo(Duration.ofSeconds(12));
        assertThat(bob.decide(2).remaining()).isZero();
        assertThat(alice.policy().spec()).isEqualTo(FAST.withCapacity(6));
        time.advance(Duration.ofSeconds(12));
        assertThat(alice.tryAcquire(1)).isTrue();
        assertThat(throttlers.snapshot("per-user", "carol"))
                .isEqualTo(new BucketSnapshot(6, Rate.of("5/1m"), 6, Duration.ZERO, Duration.ZERO));
    }

    @Test
    void availableTokensAreKeptAndCutToTheNewCapacity() {
        GlobalThrottler global = throttlers.global("global");
        assertThat(global.tryAcquire(2)).isTrue();
        global.reconfigure(BucketSpec.of("10/s").withCapacity(100));
        assertThat(global.decide(1).remaining()).isEqualTo(7);
        global.reconfigure(BucketSpec.of("10/s").withCapacity(3));
        assertThat(global.decide(1).remaining()).isEqualTo(2);
        global.reconfigure(BucketSpec.of("10/s").withCapacity(100));
        assertThat(global.decide(1).remaining()).isEqualTo(1);
    }

    @Test
    void theTimeUntilTheNextUseCountsAtTheOldRate() {
        GlobalThrottler global = throttlers.global("global");
        assertThat(global.tryAcquire(10)).isTrue();
        time.advance(Duration.ofMillis(500));
        global.reconfigure(BucketSpec.of("1/1h").withCapacity(10));
        assertThat(global.tryAcquire(5)).isTrue();
        time.advance(Duration.ofMinutes(59));
        assertThat(global.tryAcquire(1)).isFalse();
    }

    /** Greedy refill drains the bucket just before each batch of interval refill, and the batch just after. */
    @Test
    void theRatesOfSpecsThatTakeTurnsDoNotAddUp() {
        BucketSpec greedy = BucketSpec.of("10/1m");
        BucketSpec interval = greedy.withRefill(BucketSpec.Refill.INTERVAL);
        TokenBucket bucket = TokenBucket.of(greedy, time);
        long granted = drain(bucket);
        for (int period = 0; period < 30; period++) {
            time.advance(Duration.ofMinutes(1).minusNanos(1));
            bucket.reconfigure(greedy);
            granted += drain(bucket);
            time.advance(Duration.ofNanos(1));
            bucket.reconfigure(interval);
            granted += drain(bucket);
        }
        assertThat(granted).isBetween(30 * 5L, 10 + 30 * 10L + 10);
    }

    private static long drain(TokenBucket bucket) {
        long granted = 0;
        while (bucket.tryAcquire(1)) {
            granted++;
        }
        return granted;
    }

    @Test
    void aChangeToIntervalRefillKeepsTheTokensAndTakesWhatTheyEarnedOffTheNextBatch() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("10/1m"), time);
        time.advance(Duration.ofSeconds(30));
        assertThat(bucket.tryAcquire(3)).isTrue();
        bucket.reconfigure(new BucketSpec(Rate.of("100/1h"), 100, BucketSpec.Refill.INTERVAL));
        assertThat(bucket.snapshot().available()).isEqualTo(7);
        assertThat(bucket.tryAcquire(7)).isTrue();
        assertThat(bucket.decide(1).retryAfter())
                .isEqualTo(Duration.ofMinutes(60).minusSeconds(30));
        time.advance(Duration.ofMinutes(60).minusSeconds(30));
        assertThat(bucket.snapshot().available()).isEqualTo(99);
    }

    @Test
    void aChangeFromIntervalRefillKeepsWhatTimeHasEarned() {
        BucketSpec interval = new BucketSpec(Rate.of("10/1m"), 10, BucketSpec.Refill.INTERVAL);
        TokenBucket bucket = TokenBucket.of(interval, time);
        assertThat(bucket.tryAcquire(10)).isTrue();
        time.advance(Duration.ofSeconds(30));
        bucket.reconfigure(interval.withRefill(BucketSpec.Refill.GREEDY));
        assertThat(bucket.snapshot().available()).isEqualTo(5);
        assertThat(bucket.tryAcquire(1)).isTrue();
        bucket.reconfigure(interval.withCapacity(11));
        bucket.reconfigure(interval);
        assertThat(bucket.snapshot().available()).isEqualTo(4);
        time.advance(Duration.ofSeconds(30));
        assertThat(bucket.snapshot().available()).isEqualTo(9);
    }

    @Test
    void aTierIsChangedForItself() {
        throttlers.get("per-user").reconfigure("pro", BucketSpec.of("2/1d"));
        Throttler alice = throttlers.get("per-user").forKey("alice");
        assertThat(alice.inTier("pro").decide(3).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(alice.inTier("team").tryAcquire(7)).isTrue();
        assertThat(alice.tryAcquire(5)).isTrue();
        throttlers.get("per-user").reconfigure("team", BucketSpec.of("1/1d"));
        throttlers.get("per-user").reconfigure(BucketSpec.of("3/1d"));
        assertThat(alice.policy())
                .isEqualTo(USER.withSpec(BucketSpec.of("3/1d"))
                        .withTiers(Map.of("pro", BucketSpec.of("2/1d"), "team", BucketSpec.of("1/1d"))));
    }

    @Test
    void unknownNamesAreRejected() {
        assertThatExceptionOfType(UnknownPolicyException.class)
                .isThrownBy(() -> throttlers.get("per-usr").reconfigure(FAST))
                .withMessage("no throttle policy is named 'per-usr'; the policies are: global, per-user");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.get("per-user").reconfigure("por", FAST))
                .withMessage("the policy 'per-user' has no tier 'por'; its tiers are: pro, team");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.get("global").reconfigure("pro", FAST))
                .withMessage("the policy 'global' has no tier 'pro', nor any other");
        assertThat(throttlers.get("per-user").policy())
                .isSameAs(throttlers.get("per-user").configured());
    }

    @Test
    void anInvalidSpecOrAFailedCheckLeavesTheOldSpec() {
        PolicyThrottler user = throttlers.get("per-user");
        Consumer<ThrottlePolicy> check = policy -> Check.check(
                policy.spec().capacity() >= 5,
                "capacity",
                "at least 5",
                policy.spec().capacity());
        user.checkChanges(check);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> user.reconfigure(BucketSpec.of("4/1d")))
                .withMessage("capacity must be at least 5, but was 4");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.get("per-user").reconfigure(BucketSpec.of("0/1d")));
        assertThatNullPointerException().isThrownBy(() -> user.reconfigure((BucketSpec) null));
        assertThatNullPointerException().isThrownBy(() -> user.reconfigure("pro", (BucketSpec) null));
        assertThatIllegalArgumentException()
                .as("a check must hold from the start")
                .isThrownBy(() -> throttlers.get("global").checkChanges(policy -> Check.check(false, "it", "so", 0)));
        throttlers.get("global").reconfigure(FAST);
        assertThat(user.policy()).isSameAs(user.configured());
        assertThat(reported).hasSize(1);
    }

    @Test
    void theListenerGetsEachChangeOnce() {
        throttlers.get("per-user").reconfigure(FAST);
        throttlers.get("per-user").reconfigure(BucketSpec.of("5/1m"));
        throttlers.get("per-user").reconfigure("pro", BucketSpec.of("9/1d"));
        throttlers.get("per-user").reconfigure("pro", FAST);
        ThrottlePolicy fast = USER.withSpec(FAST);
        assertThat(reported)
                .containsExactly(
                        List.of(USER, fast),
                        List.of(fast, fast.withTiers(Map.of("pro", FAST, "team", BucketSpec.of("7/1d")))));
    }

    @Test
    @Timeout(60)
    void aWaitingCallKeepsItsMomentAndIsNeverOvertaken() throws Exception {
        Throttler alice = throttlers.get("per-user").forKey("alice");
        assertThat(alice.tryAcquire(5)).isTrue();
        throttlers.get("per-user").reconfigure(BucketSpec.of("1/1h"));
        CompletableFuture<Boolean> waiting = waitFor(alice, 1);
        throttlers.get("per-user").reconfigure(BucketSpec.of("1/1s"));
        assertThat(alice.decide(1).retryAfter()).isEqualTo(Duration.ofHours(1).plusSeconds(1));
        time.advance(Duration.ofHours(1).minusNanos(1));
        assertThat(waiting).isNotDone();
        time.advance(Duration.ofNanos(1));
        assertThat(waiting.get(1, TimeUnit.MINUTES)).isTrue();
        assertThat(alice.tryAcquire(1)).isFalse();
        time.advance(Duration.ofSeconds(1));
        assertThat(alice.tryAcquire(1)).isTrue();
    }

    private CompletableFuture<Boolean> waitFor(Throttler throttler, long cost) {
        CompletableFuture<Boolean> granted = CompletableFuture.supplyAsync(() -> {
            try {
                return throttler.tryAcquire(cost, Duration.ofDays(1));
            } catch (InterruptedException interrupted) {
                throw new AssertionError(interrupted);
            }
        });
        while (time.waiting() == 0) {
            Thread.onSpinWait();
        }
        return granted;
    }

    @Test
    void aSingleThrottlerCanBeChangedToo() {
        PartitionedThrottler user = new PartitionedThrottler(USER.withMode(Mode.ENFORCE));
        assertThat(user.forKey("alice").tryAcquire(5)).isTrue();
        user.reconfigure(BucketSpec.of("1/1d"));
        assertThat(user.forKey("bob").tryAcquire(2)).isFalse();
        GlobalThrottler global = new GlobalThrottler(GLOBAL);
        global.reconfigure(BucketSpec.of("1/1d"));
        assertThat(global.tryAcquire(2)).isFalse();
    }

    @Test
    void aCapacityOfOnePeriodsTokensFollowsTheRate() {
        assertThat(BucketSpec.of("600/1m").withRate(Rate.of("60/1m"))).isEqualTo(BucketSpec.of("60/1m"));
        assertThat(BucketSpec.of("600/1m").withCapacity(800).withRate(Rate.of("60/1m")))
                .isEqualTo(BucketSpec.of("60/1m").withCapacity(800));
        assertThat(BucketSpec.of("1/1s")
                        .withRefill(BucketSpec.Refill.INTERVAL)
                        .withRate(Rate.of("2/1s"))
                        .refill())
                .isEqualTo(BucketSpec.Refill.INTERVAL);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BucketSpec.of("600/1m").withCapacity(800).withRate(Rate.of("1/365d")))
                .withMessageContaining("at most ten years");
    }

    @Test
    void aChangeOfThePresentSpecLosesNoConcurrentChange() {
        List<CompletableFuture<Void>> changes = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            changes.add(CompletableFuture.runAsync(() -> {
                for (int j = 0; j < 500; j++) {
                    throttlers.get("global").reconfigure(spec -> spec.withCapacity(spec.capacity() + 1));
                    throttlers.get("per-user").reconfigure("pro", spec -> spec.withCapacity(spec.capacity() + 1));
                }
            }));
        }
        changes.forEach(CompletableFuture::join);

        assertThat(throttlers.get("global").policy().spec().capacity()).isEqualTo(2_010);
        assertThat(throttlers.get("per-user").policy().tiers().get("pro").capacity())
                .isEqualTo(2_009);
    }
}
