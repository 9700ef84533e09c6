package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Shares;
import io.ratelimit.Threads;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A denial of the backend is remembered for a moment. */
class RememberedDenialsTests {

    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("policy", BucketSpec.of("1/10s").withCapacity(5), "user");
    private static final ThrottlePolicy QUICK =
            ThrottlePolicy.of("quick", BucketSpec.of("10/1s").withCapacity(5), "user");

    private final ManualTimeSource time = new ManualTimeSource();
    private final FragileStore redis = new FragileStore(time);
    private final FailoverBucketStore store = new FailoverBucketStore(
            "Redis",
            redis,
            BucketStore.local(time),
            1,
            policy -> FailureRule.DENY,
            new Deadline(time, Duration.ofMillis(100)));

    private Decision take(ThrottlePolicy policy, long cost) {
        return store.take(List.of(Charge.of(policy, "alice", cost)));
    }

    private Decision drained(ThrottlePolicy policy) {
        Decision decision = take(policy, 5);
        assertThat(take(policy, 1).outcome()).isEqualTo(Outcome.DENIED);
        redis.calls();
        return decision;
    }

    @Test
    void aFloodOnADrainedKeyReachesRedisAboutOnceASecond() {
        drained(POLICY);
        for (int i = 0; i < 9_000; i++) {
            assertThat(take(POLICY, 1).outcome()).isEqualTo(Outcome.DENIED);
            time.advance(Duration.ofMillis(1));
        }
        assertThat(redis.calls()).isBetween(8, 10);
    }

    @Test
    void aDenialOfAGuaranteedShareIsOnlyThatOfItsKey() {
        Shares shares = Shares.forKeys(BucketSpec.of("1/1h").withCapacity(2), 2, List.of("user"));
        Charge one = Charge.of(ThrottlePolicy.of("api", BucketSpec.of("5/1h")).withShares(shares), "", 1);
        assertThat(store.take(List.of(one)).allowed()).isTrue();
        for (Charge charge : List.of(one.guaranteedTo("bob"), one.guaranteedTo("carol"))) {
            assertThat(store.take(List.of(one)).allowed()).isFalse();
            assertThat(store.take(List.of(charge)).allowed()).isTrue();
            assertThat(store.take(List.of(charge)).allowed()).isTrue();
            assertThat(store.take(List.of(charge)).allowed()).isFalse();
        }
        redis.calls();
        assertThat(store.take(List.of(one.guaranteedTo("bob"))).allowed()).isFalse();
        assertThat(redis.calls()).isZero();
        store.reset(one);
        assertThat(store.take(List.of(one.guaranteedTo("bob"))).allowed()).isTrue();
    }

    @Test
    void aFloodOfOneShareReachesRedisAboutOnceASecondAndDeniesNoOther() {
        Shares shares = Shares.forKeys(BucketSpec.of("1/1h").withCapacity(9), 2, List.of("user"));
        Charge all = Charge.of(ThrottlePolicy.of("api", BucketSpec.of("19/1h")).withShares(shares), "", 1);
        assertThat(store.take(List.of(all)).allowed()).isTrue();
        while (store.take(List.of(all.guaranteedTo("bob"))).allowed()) {}
        redis.calls();
        int allowed = 0;
        for (int i = 0; i < 9_000; i++) {
            assertThat(store.take(List.of(all.guaranteedTo("bob"))).allowed()).isFalse();
            if (i % 1_000 == 500) {
                allowed += store.take(List.of(all.guaranteedTo("carol"))).allowed() ? 1 : 0;
            }
            time.advance(Duration.ofMillis(1));
        }
        assertThat(allowed).isEqualTo(9);
        assertThat(redis.calls()).isBetween(8 + allowed, 10 + allowed);
    }

    @Test
    void tokensThatComeBackToOneShareAreThereForAll() {
        Shares shares = Shares.forKeys(BucketSpec.of("1/1h").withCapacity(1), 2, List.of("user"));
        Charge all = Charge.of(ThrottlePolicy.of("api", BucketSpec.of("5/1h")).withShares(shares), "", 3);
        Decision borrowed = store.take(List.of(all.guaranteedTo("bob")));
        Charge carol = all.guaranteedTo("carol");
        assertThat(store.take(List.of(carol)).allowed()).isFalse();
        store.giveBack(borrowed.taken());
        assertThat(store.take(List.of(carol)).allowed()).isTrue();
    }

    @Test
    void aRememberedDenialHasTheNumbersOfRedis() {
        drained(POLICY);
        for (int i = 0; i < 80; i++) {
            time.advance(Duration.ofMillis(10));
            Decision remembered = take(POLICY, 1);
            assertThat(redis.calls()).isZero();
            Decision actual = redis.take(List.of(Charge.of(POLICY, "alice", 1)));
            redis.calls();
            assertThat(comparable(remembered)).isEqualTo(comparable(actual));
        }
        assertThat(take(POLICY, 3).retryNanos())
                .isEqualTo(redis.take(List.of(Charge.of(POLICY, "alice", 3))).retryNanos());
        assertThat(redis.calls()).as("only the test's own").isEqualTo(1);
    }

    private static Answer comparable(Decision decision) {
        return decision.answers().get(0);
    }

    @Test
    void aDenialEndsWhenTheTokensHaveComeBack() {
        drained(QUICK);
        time.advance(Duration.ofMillis(100).minusNanos(1));
        assertThat(take(QUICK, 1).allowed()).isFalse();
        assertThat(redis.calls()).isZero();

        time.advance(Duration.ofNanos(1));
        assertThat(take(QUICK, 1).allowed()).isTrue();
    }

    @Test
    void smallerCostsAskRedis() {
        take(POLICY, 3);
        assertThat(take(POLICY, 4).allowed()).isFalse();
        redis.calls();

        assertThat(take(POLICY, 5).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(redis.calls()).isZero();
        assertThat(take(POLICY, 2).allowed()).isTrue();
        assertThat(take(POLICY, 2).allowed()).isFalse();
        assertThat(take(POLICY, 3).allowed()).isFalse();
        assertThat(redis.calls()).as("the denial of 2 says more than that of 4").isEqualTo(2);
    }

    @Test
    void aCostThatNeverFitsIsNoDenial() {
        drained(POLICY);

        assertThat(take(POLICY, 6).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(take(POLICY, 6).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    @Test
    void otherKeysAndOtherSpecsAskRedis() {
        drained(POLICY);

        assertThat(store.take(List.of(Charge.of(POLICY, "bob", 1))).allowed()).isTrue();
        BucketSpec larger = BucketSpec.of("100/1s");
        assertThat(redis.calls()).isEqualTo(1);
        store.take(List.of(new Charge(POLICY, larger, "alice", 1)));
        assertThat(redis.calls()).as("the limit was changed").isEqualTo(1);
    }

    @Test
    void callsThatMayWaitAreNeitherRememberedNorDenied() {
        Charge patient = Charge.of(POLICY, "alice", 1).withMaxWait(Duration.ofMinutes(1));
        take(POLICY, 5);
        store.take(List.of(patient));
        redis.calls();
        assertThat(take(POLICY, 1).allowed()).isFalse();
        assertThat(redis.calls()).isEqualTo(1);
        assertThat(store.take(List.of(patient)).allowed()).isFalse();
        assertThat(store.reserve(List.of(patient)).allowed()).isTrue();
        assertThat(redis.calls()).isEqualTo(2);
    }

    @Test
    void aGiveBackEndsADenialAtOnce() {
        Decision taken = drained(POLICY);

        store.giveBack(taken.answers());

        assertThat(take(POLICY, 5).allowed()).isTrue();
    }

    @Test
    void aResetEndsADenialAtOnce() {
        drained(POLICY);

        store.reset(Charge.of(POLICY, "alice", 1));

        assertThat(take(POLICY, 5).allowed()).isTrue();
    }

    /** The answer was on its way while tokens came back. */
    @Test
    void aDenialFromBeforeIsNotRemembered() {
        RememberedDenials denials = new RememberedDenials(time);
        Charge charge = Charge.of(POLICY, "alice", 1);
        redis.take(List.of(Charge.of(POLICY, "alice", 5)));
        long calledAt = time.nanoTime();
        Decision denied = redis.take(List.of(charge));
        denials.forget(charge);
        denials.note(denied, calledAt);
        assertThat(denials.find(List.of(charge), true)).isEmpty();

        time.advance(Duration.ofNanos(1));
        denials.note(denied, time.nanoTime());
        assertThat(denials.find(List.of(charge), true)).hasSize(1);
    }

    @Test
    void aCallThatAnotherBucketDeniesDoesNotRenewADenial() {
        drained(POLICY);
        time.advance(Duration.ofMillis(500));
        store.take(List.of(Charge.of(POLICY, "bob", 5)));
        store.take(List.of(Charge.of(POLICY, "bob", 1)));
        time.advance(Duration.ofMillis(450));
        redis.calls();

        assertThat(store.take(List.of(Charge.of(POLICY, "alice", 1), Charge.of(POLICY, "bob", 1)))
                        .denials())
                .hasSize(2);
        assertThat(redis.calls()).isZero();
        take(POLICY, 1);
        assertThat(redis.calls()).isEqualTo(1);
    }

    @Test
    void ofSeveralAllThatAreRememberedAreNamed() {
        drained(POLICY);
        drained(QUICK);

        Decision denied = store.take(
                List.of(Charge.of(POLICY, "alice", 1), Charge.of(POLICY, "bob", 1), Charge.of(QUICK, "alice", 1)));

        assertThat(denied.denials()).extracting(Answer::policy).containsExactly(POLICY, QUICK);
        assertThat(redis.calls()).isZero();
        assertThat(redis.available(Charge.of(POLICY, "bob", 1))).isEqualTo(5);
    }

    @Test
    void keysWithCollidingHashCodesDoNotSlowItDown() {
        RememberedDenials denials = new RememberedDenials(time);
        List<String> colliding = IntStream.range(0, 1 << 14)
                .mapToObj(bits -> IntStream.range(0, 14)
                        .mapToObj(bit -> (bits >> bit & 1) == 0 ? "Aa" : "BB")
                        .reduce("", String::concat))
                .toList();
        assertThat(colliding).allMatch(key -> key.hashCode() == colliding.get(0).hashCode());
        long before = Threads.cpuNanos();
        for (String key : colliding) {
            Charge charge = Charge.of(POLICY, key, 1);
            assertThat(denials.find(List.of(charge), true)).isEmpty();
            denials.note(
                    Decision.of(List.of(Answer.denied(charge, Outcome.DENIED, Duration.ofSeconds(1)))),
                    time.nanoTime());
        }
        assertThat(Threads.cpuNanos() - before).isLessThan(Duration.ofSeconds(3).toNanos());
        assertThat(colliding)
                .allMatch(key ->
                        denials.find(List.of(Charge.of(POLICY, key, 1)), true).size() == 1);
    }

    /** A client may send many keys, and long ones. */
    @ParameterizedTest
    @CsvSource({"10, 100000", "1000, 10000"})
    void theDenialsThatAreRememberedAreBoundedByTheirLength(int length, int keys) {
        RememberedDenials denials = new RememberedDenials(time);
        List<Charge> charges = IntStream.range(0, keys)
                .mapToObj(i -> Charge.of(POLICY, "x".repeat(length - 6) + (100_000 + i), 1))
                .toList();
        for (Charge charge : charges) {
            denials.note(
                    Decision.of(List.of(Answer.denied(charge, Outcome.DENIED, Duration.ofSeconds(1)))),
                    time.nanoTime());
        }
        long most = 8_000_000 / (100 + length);
        await().untilAsserted(() -> assertThat(charges.stream()
                        .filter(charge -> !denials.find(List.of(charge), false).isEmpty())
                        .count())
                .isBetween(most / 2, most));
    }

    @Test
    void oneOfManyCallsRenewsADenial() {
        drained(POLICY);
        time.advance(Duration.ofMillis(900));
        for (int i = 0; i < 100; i++) {
            assertThat(take(POLICY, 1).allowed()).isFalse();
        }
        assertThat(redis.calls()).isEqualTo(1);
    }
}
