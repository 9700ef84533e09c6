package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Calls that are settled far above their estimate, in overflow buckets that strangers share. */
class SharedDebtTests {

    /** Enough debtors for each of the 4,096 overflow buckets: in one run of ten million a bucket has none. */
    private static final int DEBTORS = 25 * 4_096;

    private static final Duration TIME_TO_FULL = Duration.ofMinutes(1);
    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("tokens", BucketSpec.of("60/1m"), "ip").withMaxKeys(1);

    private final ManualTimeSource time = new ManualTimeSource();
    private final LocalBucketStore store = new LocalBucketStore(time);

    @BeforeEach
    void fillUp() {
        take(POLICY, "known", 1);
    }

    private Answer take(ThrottlePolicy policy, String key, long cost) {
        return store.take(List.of(Charge.of(policy, key, cost))).answers().get(0);
    }

    private Duration retryAfter(ThrottlePolicy policy, String key, long cost) {
        return Duration.ofNanos(take(policy, key, cost).retryNanos());
    }

    private void settleAll(ThrottlePolicy policy, String prefix, long cost) {
        for (int i = 0; i < DEBTORS; i++) {
            Answer taken = take(policy, prefix + "debtor" + i, 1);
            if (taken.allowed()) {
                assertThat(store.settle(taken, cost)).isTrue();
            }
        }
    }

    private int allowedOf(ThrottlePolicy policy, String prefix, int strangers) {
        int allowed = 0;
        for (int i = 0; i < strangers; i++) {
            allowed += take(policy, prefix + "stranger" + i, 1).allowed() ? 1 : 0;
        }
        return allowed;
    }

    @ParameterizedTest
    @EnumSource(names = {"GREEDY", "INTERVAL"})
    void debtsInSharedBucketsLockNoStrangerOutForLongerThanAFullBucketTakes(BucketSpec.Refill refill) {
        ThrottlePolicy policy = POLICY.withSpec(POLICY.spec().withRefill(refill));
        settleAll(policy, "", 5_000);

        assertThat(allowedOf(policy, "", 10_000)).isZero();
        time.advance(TIME_TO_FULL);
        assertThat(allowedOf(policy, "", 10_000)).isEqualTo(10_000);
    }

    /** Tiers and network overrides have overflow buckets of their own. */
    @Test
    void theOverflowBucketsOfATierOweNoMoreEither() {
        String tier = Keys.inTier("free", "");
        settleAll(POLICY, tier, 5_000);

        assertThat(allowedOf(POLICY, tier, 10_000)).isZero();
        assertThat(allowedOf(POLICY, "", 1_000)).isEqualTo(1_000);
        time.advance(TIME_TO_FULL);
        assertThat(allowedOf(POLICY, tier, 10_000)).isEqualTo(10_000);
    }

    @Test
    void aKeyThatGetsItsOwnBucketStartsWithAnEmptyOneAtWorst() {
        store.settle(take(POLICY, "debtor", 1), 5_000);
        store.reset(Charge.of(POLICY, "known", 1));

        assertThat(retryAfter(POLICY, "debtor", 1)).isEqualTo(Duration.ofSeconds(1));
        BucketSnapshot own = store.snapshot(Charge.of(POLICY, "debtor", 1));
        assertThat(own.available()).isZero();
        assertThat(own.resetAfter()).isEqualTo(TIME_TO_FULL);
    }

    @Test
    void aSharedBucketPaysWhatItHas() {
        store.settle(take(POLICY, "debtor", 1), 40);
        assertThat(store.snapshot(Charge.of(POLICY, "debtor", 1)).available()).isEqualTo(20);
        store.settle(take(POLICY, "debtor", 1), 40);
        assertThat(store.snapshot(Charge.of(POLICY, "debtor", 1)).resetAfter()).isEqualTo(TIME_TO_FULL);
    }

    /** The calls that wait have taken tokens ahead: their turns stay, and so does the debt of a key that moves. */
    @Test
    void aSettlementMovesNoTurnOfACallThatWaits() {
        Answer settled = take(POLICY, "debtor", 30);
        Charge ahead = Charge.of(POLICY, "debtor", 60).withMaxWait(Duration.ofHours(1));
        assertThat(store.reserve(List.of(ahead)).waitNanos())
                .isEqualTo(Duration.ofSeconds(30).toNanos());
        store.settle(settled, 5_000);
        assertThat(store.reserve(List.of(ahead)).waitNanos())
                .isEqualTo(Duration.ofSeconds(90).toNanos());

        store.reset(Charge.of(POLICY, "known", 1));
        assertThat(retryAfter(POLICY, "debtor", 1)).isEqualTo(Duration.ofSeconds(91));
    }

    /** No other key shares the bucket of a key that has its own. */
    @Test
    void aKeyWithItsOwnBucketOwesAll() {
        store.settle(take(POLICY, "known", 1), 5_000);
        assertThat(retryAfter(POLICY, "known", 1)).isEqualTo(Duration.ofSeconds(5_001 - 59));
    }

    /** The key that has moved pays for a call of the shared bucket. */
    @Test
    void aKeyThatHasMovedOwesInItsOwnBucket() {
        Answer taken = take(POLICY, "debtor", 1);
        store.reset(Charge.of(POLICY, "known", 1));
        take(POLICY, "debtor", 1);
        store.settle(taken, 5_000);
        assertThat(retryAfter(POLICY, "debtor", 1)).isGreaterThan(Duration.ofSeconds(4_900));
    }
}
