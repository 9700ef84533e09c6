package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Charges to policies in memory and in a remote store, in one call. */
class RoutingBucketStoreTests {

    private static final ThrottlePolicy NODE =
            ThrottlePolicy.of("node", BucketSpec.of("1/1s").withCapacity(5));
    private static final ThrottlePolicy HOST =
            ThrottlePolicy.of("host", BucketSpec.of("1/1s").withCapacity(9));
    private static final ThrottlePolicy QUOTA =
            ThrottlePolicy.of("quota", BucketSpec.of("1/10s").withCapacity(3), "user");
    private static final ThrottlePolicy TENANT =
            ThrottlePolicy.of("tenant", BucketSpec.of("1/20s").withCapacity(3), "user");

    private final ManualTimeSource time = new ManualTimeSource();
    private final FragileStore redis = new FragileStore(time);
    private final BucketStore local = BucketStore.local(time);
    private final RoutingBucketStore store = new RoutingBucketStore(
            local,
            new FailoverBucketStore(
                    "Redis",
                    redis,
                    BucketStore.local(time),
                    1,
                    policy -> FailureRule.DENY,
                    new Deadline(time, Duration.ofMillis(100))),
            policy -> !policy.isGlobal());

    private static Charge charge(ThrottlePolicy policy, long cost) {
        return Charge.of(policy, policy.isGlobal() ? "" : "alice", cost);
    }

    private Decision take(Charge... charges) {
        return store.take(List.of(charges));
    }

    private long here(ThrottlePolicy policy) {
        return local.snapshot(charge(policy, 1)).available();
    }

    private long there(ThrottlePolicy policy) {
        return redis.available(charge(policy, 1));
    }

    @Test
    void eachPolicyTakesFromItsOwnStore() {
        assertThat(take(charge(NODE, 1)).allowed()).isTrue();
        assertThat(redis.calls()).isZero();
        assertThat(take(charge(QUOTA, 2)).allowed()).isTrue();
        assertThat(redis.calls()).isEqualTo(1);

        assertThat(here(NODE)).isEqualTo(4);
        assertThat(there(QUOTA)).isEqualTo(1);
        assertThat(store.snapshot(charge(QUOTA, 1)).available()).isEqualTo(1);
        assertThat(store.snapshot(charge(NODE, 1)).available()).isEqualTo(4);
    }

    @Test
    void answersComeInTheOrderAsked() {
        Decision decision = take(charge(QUOTA, 1), charge(NODE, 1), charge(TENANT, 1), charge(HOST, 1));

        assertThat(decision.allowed()).isTrue();
        assertThat(decision.answers()).extracting(Answer::policy).containsExactly(QUOTA, NODE, TENANT, HOST);
        assertThat(redis.calls()).as("in one go").isEqualTo(1);
    }

    @Test
    void aChargeThatIsThereTwiceIsTakenAndGivenBackTwice() {
        Charge here = charge(NODE, 1);
        Charge there = charge(QUOTA, 1);

        Decision decision = take(here, there, here, there);
        assertThat(decision.answers()).extracting(Answer::charge).containsExactly(here, there, here, there);
        assertThat(here(NODE)).isEqualTo(3);
        assertThat(there(QUOTA)).isEqualTo(1);

        take(here);
        store.giveBack(decision.answers());
        assertThat(here(NODE)).isEqualTo(4);
        assertThat(there(QUOTA)).isEqualTo(3);
    }

    @Test
    void ifMemoryDeniesTheRemoteStoreIsNotCalled() {
        take(charge(NODE, 5));

        Decision denied = take(charge(QUOTA, 1), charge(NODE, 1), charge(HOST, 1));

        assertThat(denied.denials()).extracting(Answer::policy).containsExactly(NODE);
        assertThat(redis.calls()).isZero();
        assertThat(there(QUOTA)).isEqualTo(3);
        assertThat(here(HOST)).isEqualTo(9);
    }

    @Test
    void aRememberedDenialIsReportedTogetherWithOneOfMemory() {
        take(charge(NODE, 5));
        take(charge(QUOTA, 3));
        take(charge(QUOTA, 1));

        Decision denied = take(charge(QUOTA, 1), charge(TENANT, 1), charge(NODE, 1));

        assertThat(denied.denials()).extracting(Answer::policy).containsExactly(QUOTA, NODE);
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofSeconds(10));
    }

    @Test
    void aCallThatMemoryDeniesDoesNotCountAsTheRenewalOfADenial() {
        take(charge(QUOTA, 3));
        take(charge(QUOTA, 1));
        time.advance(Duration.ofMillis(950));
        take(charge(NODE, 5));
        redis.calls();

        assertThat(take(charge(QUOTA, 1), charge(NODE, 1)).denials()).hasSize(2);
        assertThat(redis.calls()).isZero();
        take(charge(QUOTA, 1));
        assertThat(redis.calls()).isEqualTo(1);
    }

    @Test
    void ifTheRemoteStoreDeniesMemoryGetsItsTokensBack() {
        take(charge(QUOTA, 3));
        take(charge(HOST, 2));

        Decision denied = take(charge(NODE, 2), charge(QUOTA, 1), charge(HOST, 3));

        assertThat(denied.denials()).extracting(Answer::policy).containsExactly(QUOTA);
        assertThat(here(NODE)).isEqualTo(5);
        assertThat(here(HOST)).isEqualTo(7);
        assertThat(denied.answers()).extracting(Answer::policy).containsExactly(NODE, QUOTA, HOST);
        assertThat(denied.answers().get(0).remaining())
                .as("it had the tokens, and has them still")
                .isEqualTo(5);
    }

    @Test
    void ifTheRemoteStoreFailsMemoryGetsItsTokensBack() {
        redis.breakDown();

        Decision refused = take(charge(NODE, 2), charge(QUOTA, 1));

        assertThat(refused.outcome()).isEqualTo(Decision.Outcome.BACKEND_FAILED);
        assertThat(here(NODE)).isEqualTo(5);
    }

    @Test
    void tokensAreTakenAheadInBothAndGivenBackByTheirPositions() {
        take(charge(NODE, 5), charge(QUOTA, 3));
        Decision ahead = reserve(60, charge(NODE, 2), charge(QUOTA, 1));
        assertThat(ahead.allowed()).isTrue();
        assertThat(ahead.waitFor()).as("the longest wait counts").isEqualTo(Duration.ofSeconds(10));

        assertThat(reserve(5, charge(NODE, 2), charge(QUOTA, 1)).allowed())
                .as("in memory the wait would do, in Redis it doesn't")
                .isFalse();
        store.giveBack(ahead.answers());

        time.advance(Duration.ofSeconds(1));
        assertThat(take(charge(NODE, 1)).allowed()).isTrue();
        time.advance(Duration.ofSeconds(9));
        assertThat(take(charge(QUOTA, 1)).allowed()).isTrue();
    }

    private Decision reserve(int seconds, Charge... charges) {
        return store.reserve(List.of(charges).stream()
                .map(charge -> charge.withMaxWait(Duration.ofSeconds(seconds)))
                .toList());
    }

    @Test
    void tokensAreGivenBackToTheirStores() {
        Decision decision = take(charge(NODE, 5), charge(QUOTA, 3));

        store.giveBack(decision.answers());

        assertThat(here(NODE)).isEqualTo(5);
        assertThat(there(QUOTA)).isEqualTo(3);
    }

    @Test
    void aBucketIsResetInItsOwnStore() {
        take(charge(NODE, 5), charge(QUOTA, 3));

        store.reset(charge(QUOTA, 1));
        assertThat(there(QUOTA)).isEqualTo(3);
        assertThat(here(NODE)).isZero();
        store.reset(charge(NODE, 1));
        assertThat(here(NODE)).isEqualTo(5);
    }

    @Test
    void noChargesAreAllowed() {
        assertThat(take().allowed()).isTrue();
        assertThat(redis.calls()).isZero();
    }
}
