package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers.UnknownPolicyException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class ThrottlersTests {

    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", BucketSpec.of("10/s"));
    private static final ThrottlePolicy USER =
            ThrottlePolicy.of("per-user", BucketSpec.of("1/s").withCapacity(3), "user");
    private static final ThrottlePolicy BOTH =
            ThrottlePolicy.of("per-user-per-endpoint", BucketSpec.of("1/s").withCapacity(2), "user", "endpoint");

    private final ManualTimeSource time = new ManualTimeSource();
    private final List<Decision> decisions = new ArrayList<>();

    private Throttlers throttlers(ThrottlePolicy... policies) {
        return new Throttlers(List.of(policies), BucketStore.local(time), time, decisions::add);
    }

    private static Charge charge(Throttlers throttlers, String policy, String... key) {
        return throttlers.get(policy).forKey(key).charge(1);
    }

    private static List<String> policies(Decision decision) {
        return decision.answers().stream().map(answer -> answer.policy().name()).toList();
    }

    @Test
    void aPolicyMayBeAddedLaterUnderAUniqueName() {
        Throttlers throttlers = Throttlers.local(List.of(ThrottlePolicy.of("first", BucketSpec.of("1/1h"))));

        throttlers.add(ThrottlePolicy.of("later", BucketSpec.of("2/1h"), "user"));

        assertThat(throttlers.all().stream().map(throttler -> throttler.policy().name()))
                .containsExactly("first", "later");
        assertThat(throttlers.get("later").forKey("alice").decide(2).allowed()).isTrue();
        assertThat(throttlers.snapshot("later", "alice").available()).isZero();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.add(ThrottlePolicy.of("first", BucketSpec.of("1/1h"))))
                .withMessage("the name of a policy must be unique, but was first");
    }

    @Test
    void areFoundByTheNamesOfTheirPolicies() {
        Throttlers throttlers = throttlers(GLOBAL, USER);
        assertThat(throttlers.get("global")).isInstanceOf(GlobalThrottler.class);
        assertThat(throttlers.get("per-user"))
                .isInstanceOf(PartitionedThrottler.class)
                .isNotInstanceOf(Throttler.class);
        assertThat(throttlers.get("per-user").policy()).isEqualTo(USER);
        assertThat(throttlers.all()).extracting(PolicyThrottler::policy).containsExactly(GLOBAL, USER);
    }

    @Test
    void anUnknownPolicyIsNamedBesideTheKnownOnes() {
        assertThatExceptionOfType(UnknownPolicyException.class)
                .isThrownBy(() -> throttlers(USER, GLOBAL).get("globl"))
                .withMessage("no throttle policy is named 'globl'; the policies are: global, per-user")
                .satisfies(unknown -> {
                    assertThat(unknown.policy()).isEqualTo("globl");
                    assertThat(unknown.policies()).containsExactlyInAnyOrder("global", "per-user");
                });
    }

    @Test
    void twoPoliciesOfOneNameAreRejected() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers(GLOBAL, USER, GLOBAL))
                .withMessage("the name of a policy must be unique, but was global");
    }

    /** S2.3. */
    @Test
    void aGlobalPolicyHasOneBucketForAllCalls() {
        Throttlers throttlers = throttlers(GLOBAL);
        assertThat(throttlers.global("global").decide(7).remaining()).isEqualTo(3);
        assertThat(throttlers.global("global").tryAcquire(3)).isTrue();
        assertThat(throttlers.global("global").tryAcquire(1)).isFalse();
    }

    /** S2.4, S4.1. */
    @Test
    void aPartitionedPolicyHasABucketForEachKey() {
        Throttlers throttlers = throttlers(USER, BOTH);
        PolicyThrottler users = throttlers.get("per-user");
        assertThat(users.forKey("alice").tryAcquire(3)).isTrue();
        assertThat(users.forKey("alice").tryAcquire(1)).isFalse();
        assertThat(users.forKey("bob").tryAcquire(3)).isTrue();
        PolicyThrottler both = throttlers.get("per-user-per-endpoint");
        assertThat(both.forKey("alice", "GET /x").tryAcquire(2)).isTrue();
        assertThat(both.forKey("alice", "GET /y").tryAcquire(2)).isTrue();
        assertThat(both.forKey("aliceG", "ET /x").tryAcquire(2)).isTrue();
        assertThat(both.forKey("alice", "GET /x").tryAcquire(1)).isFalse();
    }

    @Test
    void keysIgnoreCaseByDefault() {
        Throttlers throttlers =
                throttlers(USER, ThrottlePolicy.of("exact", USER.spec(), "user").withIgnoreCase(false));
        assertThat(throttlers.get("per-user").forKey("Alice").tryAcquire(3)).isTrue();
        assertThat(throttlers.get("per-user").forKey("aLICE").tryAcquire(1)).isFalse();
        assertThat(throttlers.get("exact").forKey("Alice").tryAcquire(3)).isTrue();
        assertThat(throttlers.get("exact").forKey("aLICE").tryAcquire(3)).isTrue();
    }

    @Test
    void aKeyHasThePolicysParts() {
        Throttlers throttlers = throttlers(GLOBAL, USER, BOTH);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.get("per-user-per-endpoint").forKey("alice"))
                .withMessage("the key of 'per-user-per-endpoint' must be of 2 (user, endpoint), but was of 1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.get("per-user").forKey())
                .withMessage("the key of 'per-user' must be of 1 (user), but was of 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.get("per-user").forKey(" "))
                .withMessage("the user in the key of 'per-user' must be more than blanks");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.get("global").forKey("alice"))
                .withMessage("the policy 'global' is global and has no keys");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.global("per-user-per-endpoint"))
                .withMessage("the policy 'per-user-per-endpoint' has a bucket for each key: call"
                        + " get(\"per-user-per-endpoint\").forKey(user, endpoint)");
    }

    @Test
    void aGlobalThrottlerIsTheThrottlerOfItsOnlyBucket() {
        PolicyThrottler global = throttlers(GLOBAL).get("global");
        assertThat(global.forKey()).isSameAs(global);
        assertThat(global.forKey().tryAcquire(10)).isTrue();
        assertThat(global.forKey().tryAcquire(1)).isFalse();
    }

    @Test
    void theThrottlerOfAKeyMakesItsCharges() {
        Throttler alice = throttlers(USER).get("per-user").forKey("alice");
        assertThat(alice.policy()).isEqualTo(USER);
        assertThat(alice.charge(2)).isEqualTo(Charge.of(USER, "alice", 2));
    }

    @Test
    void aCostBelowOneIsRejected() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers(GLOBAL).global("global").decide(0))
                .withMessage("cost must be at least 1, but was 0");
    }

    @Test
    void aThrottlerCanBeUsedAlone() {
        assertThat(new GlobalThrottler(GLOBAL).tryAcquire(10)).isTrue();
        PartitionedThrottler users = new PartitionedThrottler(USER);
        assertThat(users.forKey("alice").tryAcquire(3)).isTrue();
        assertThat(users.forKey("ALICE").decide(3).outcome()).isEqualTo(Outcome.DENIED);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new GlobalThrottler(USER))
                .withMessage("the policy of a global throttler must be one without a key, but was [user]");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new PartitionedThrottler(GLOBAL))
                .withMessage("the policy of a partitioned throttler must be one with a key, but was global");
    }

    @Test
    void theListenerGetsEveryDecision() {
        Throttlers throttlers = throttlers(GLOBAL);
        Decision yes = throttlers.global("global").decide(10);
        Decision no = throttlers.global("global").decide(1);
        assertThat(decisions).containsExactly(yes, no);
    }

    @Test
    void theListenerGetsNoDecisionWithoutCharges() {
        assertThat(throttlers(GLOBAL).decide(List.of()).allowed()).isTrue();
        assertThat(decisions).isEmpty();
    }

    @Test
    void aPolicyThatIsOffDoesNotDecide() {
        Throttlers throttlers = throttlers(GLOBAL.withMode(Mode.OFF), USER);
        assertThat(throttlers.global("global").decide(11).allowed()).isTrue();
        assertThat(decisions).isEmpty();
        Decision decision = throttlers.decide(
                List.of(throttlers.global("global").charge(11), charge(throttlers, "per-user", "alice")));
        assertThat(policies(decision)).containsExactly("per-user");
        assertThat(throttlers.snapshot("global").available()).isEqualTo(10);
    }

    @Test
    void aShadowPolicyDeniesNoCallAndTheListenerGetsItsDecision() {
        Throttlers throttlers = throttlers(GLOBAL.withMode(Mode.SHADOW));
        assertThat(throttlers.global("global").decide(10).allowed()).isTrue();
        assertThat(throttlers.global("global").decide(1).allowed()).isTrue();
        assertThat(throttlers.global("global").decide(11).allowed()).isTrue();
        assertThat(decisions)
                .extracting(Decision::outcome)
                .containsExactly(Outcome.ALLOWED, Outcome.DENIED, Outcome.NEVER_FITS);
        assertThat(decisions)
                .allSatisfy(decision -> assertThat(policies(decision)).containsExactly("global"));
    }

    @Test
    void aShadowPolicyWhoseBackendFailsDeniesNoCall() {
        Events events = new Events();
        BucketStore store = new PlainStore(BucketStore.local(time)) {
            @Override
            public Decision take(List<Charge> charges) {
                if (charges.get(0).policy().name().equals("per-user")) {
                    throw new BackendException("on purpose");
                }
                return super.take(charges);
            }
        };
        Throttlers throttlers = new Throttlers(List.of(GLOBAL, USER.withMode(Mode.SHADOW)), store, time, events);
        events.reported.clear();

        Decision decision = throttlers.decide(
                List.of(throttlers.global("global").charge(1), charge(throttlers, "per-user", "alice")));

        assertThat(decision.allowed()).isTrue();
        assertThat(policies(decision)).containsExactly("global");
        assertThat(events.reported).containsExactly("per-user BACKEND_FAILURE");
    }

    @Test
    void shadowPoliciesDecideApartAndChargeNoOtherPolicy() {
        Throttlers throttlers = throttlers(GLOBAL, USER.withMode(Mode.SHADOW), BOTH.withMode(Mode.SHADOW));
        List<Charge> charges = List.of(
                charge(throttlers, "per-user-per-endpoint", "alice", "GET /x"),
                throttlers.global("global").charge(1),
                charge(throttlers, "per-user", "alice"));
        for (int i = 0; i < 4; i++) {
            Decision decision = throttlers.decide(charges);
            assertThat(decision.allowed()).as("call %d", i).isTrue();
            assertThat(policies(decision)).containsExactly("global");
        }
        assertThat(decisions).hasSize(12);
        assertThat(decisions.subList(9, 12))
                .extracting(Decision::outcome)
                .containsExactly(Outcome.ALLOWED, Outcome.DENIED, Outcome.DENIED);
        assertThat(throttlers.snapshot("global").available()).isEqualTo(6);
        assertThat(throttlers.snapshot("per-user", "alice").available()).isZero();
        assertThat(throttlers
                        .snapshot("per-user-per-endpoint", "alice", "GET /x")
                        .available())
                .isZero();
    }

    @Test
    void shadowPoliciesAreNotChargedForADeniedCall() {
        Throttlers throttlers = throttlers(GLOBAL, USER.withMode(Mode.SHADOW));
        assertThat(throttlers.global("global").tryAcquire(10)).isTrue();
        Decision decision = throttlers.decide(List.of(
                charge(throttlers, "per-user", "alice"),
                throttlers.global("global").charge(1)));
        assertThat(decision.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(3);
        assertThat(decisions)
                .extracting(ThrottlersTests::policies)
                .containsExactly(List.of("global"), List.of("global"));
    }

    @Test
    void takenTokensCanBeGivenBack() {
        Throttlers throttlers = throttlers(GLOBAL, USER);
        List<Charge> charges = List.of(
                charge(throttlers, "per-user", "alice"),
                throttlers.global("global").charge(4));
        Decision decision = throttlers.decide(charges);
        assertThat(decision.allowed()).isTrue();
        throttlers.giveBack(decision.answers());
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(3);
        assertThat(throttlers.snapshot("global").available()).isEqualTo(10);
    }

    @Test
    void aCallIsSettledAtItsActualCostAndTheListenerGetsTheEvent() {
        List<String> events = new ArrayList<>();
        Throttlers throttlers = listening(BucketStore.local(time), events);
        Answer taken =
                throttlers.get("per-user").forKey("alice").decide(2).taken().get(0);
        assertThat(throttlers.settle(taken, 0)).isTrue();
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(3);
        Answer other =
                throttlers.get("per-user").forKey("alice").decide(1).taken().get(0);
        assertThat(throttlers.settle(other, 4)).isTrue();
        assertThat(throttlers.snapshot("per-user", "alice").resetAfter()).isEqualTo(Duration.ofSeconds(4));
        assertThat(events).containsExactly("per-user SETTLED", "per-user SETTLED");
        for (long cost : new long[] {-1, Throttlers.MAX_SETTLED_COST + 1}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> throttlers.settle(other, cost))
                    .withMessage("cost must be between 0 and 1000000000000, but was " + cost);
        }
    }

    @Test
    void aCallThatIsSettledLaterIsSettledByTheStoresExecutor() {
        List<String> events = new ArrayList<>();
        List<Runnable> waiting = new ArrayList<>();
        Throttlers throttlers = listening(
                new PlainStore(BucketStore.local(time)) {
                    @Override
                    public Executor settlements(ThrottlePolicy policy) {
                        return settlement -> {
                            if (!waiting.isEmpty()) {
                                throw new RejectedExecutionException();
                            }
                            waiting.add(settlement);
                        };
                    }
                },
                events);
        Throttler alice = throttlers.get("per-user").forKey("alice");
        throttlers.settleLater(alice.decide(1).taken().get(0), 0);
        assertThat(events).isEmpty();
        throttlers.settleLater(alice.decide(1).taken().get(0), 0);
        assertThat(events).as("one settlement waits").containsExactly("per-user BACKEND_FAILURE");
        waiting.get(0).run();
        assertThat(events).containsExactly("per-user BACKEND_FAILURE", "per-user SETTLED");
        assertThat(alice.snapshot().available()).as("one estimate stands").isEqualTo(2);
    }

    @Test
    void aBucketInMemoryIsSettledAtOnceAlsoLater() {
        Throttlers throttlers = throttlers(USER);
        Throttler alice = throttlers.get("per-user").forKey("alice");
        Answer taken = alice.decide(2).taken().get(0);
        throttlers.settleLater(taken, 1);
        assertThat(alice.snapshot().available()).isEqualTo(2);
        assertThatIllegalArgumentException().isThrownBy(() -> throttlers.settleLater(taken, -1));
    }

    @Test
    void aStoreWithoutDebtsReservesADifferenceUpToTheCapacity() {
        List<String> events = new ArrayList<>();
        BucketStore local = BucketStore.local(time);
        Throttlers throttlers = listening(new PlainStore(local), events);
        Answer taken =
                throttlers.get("per-user").forKey("alice").decide(2).taken().get(0);
        assertThat(throttlers.settle(taken, 1)).isTrue();
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(2);
        Answer second =
                throttlers.get("per-user").forKey("alice").decide(1).taken().get(0);
        assertThat(throttlers.settle(second, 4)).isTrue();
        assertThat(throttlers.settle(second, 9)).isFalse();
        assertThat(throttlers.snapshot("per-user", "alice").resetAfter()).isEqualTo(Duration.ofSeconds(8));
        assertThat(events).containsExactly("per-user SETTLED", "per-user SETTLED", "per-user SETTLE_FAILURE");
    }

    /** The estimate was 50, and one token came back since. In memory time pays for the 10 first, so 91 are left. */
    @Test
    void aStoreThatDoesNotSettleByItselfCountsThePassedTimeForTheRest() {
        Charge charge =
                Charge.of(ThrottlePolicy.of("api", BucketSpec.of("1/s").withCapacity(100), "user"), "alice", 50);
        BucketStore local = BucketStore.local(time);
        for (BucketStore store : List.of(new PlainStore(BucketStore.local(time)), local)) {
            Answer taken = store.take(List.of(charge)).answers().get(0);
            time.advance(Duration.ofSeconds(1));
            assertThat(store.settle(taken, 10)).isTrue();
            assertThat(store.snapshot(charge).available()).isEqualTo(store == local ? 91 : 90);
        }
    }

    @Test
    void aFailureOfTheBackendIsCountedAndNotThrown() {
        List<String> events = new ArrayList<>();
        BucketStore local = BucketStore.local(time);
        Throttlers throttlers = listening(
                new PlainStore(local) {
                    @Override
                    public void giveBack(List<Answer> taken) {
                        throw new BackendException("on purpose");
                    }
                },
                events);
        Answer taken =
                throttlers.get("per-user").forKey("alice").decide(2).taken().get(0);
        assertThat(throttlers.settle(taken, 1)).isFalse();
        assertThat(events).containsExactly("per-user BACKEND_FAILURE");
        throttlers.giveBackLater(List.of(taken));
        assertThat(events).containsExactly("per-user BACKEND_FAILURE", "per-user BACKEND_FAILURE");
    }

    private Throttlers listening(BucketStore store, List<String> events) {
        return new Throttlers(List.of(USER), store, time, new ThrottleListener() {
            @Override
            public void decided(Decision decision) {}

            @Override
            public void eventOccurred(ThrottlePolicy policy, Event event) {
                events.add(policy.name() + " " + event);
            }
        });
    }

    @Test
    void tokensOfShadowPoliciesAreListedApartAndCanBeGivenBack() {
        Throttlers throttlers = throttlers(GLOBAL, USER.withMode(Mode.SHADOW), BOTH.withMode(Mode.SHADOW));
        throttlers.get("per-user-per-endpoint").forKey("alice", "GET /x").decide(2);
        List<Charge> charges = List.of(
                charge(throttlers, "per-user-per-endpoint", "alice", "GET /x"),
                Charge.of(GLOBAL, "", 1),
                charge(throttlers, "per-user", "alice"));

        Decision decision = throttlers.decide(charges);

        assertThat(policies(decision)).containsExactly("global");
        assertThat(decision.shadows()).as("not of one that denied").hasSize(1);
        assertThat(decision.shadows().get(0).charge()).isSameAs(charges.get(2));
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(2);
        throttlers.giveBack(decision.answers());
        assertThat(throttlers.snapshot("global").available()).isEqualTo(10);
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(2);
        throttlers.giveBack(decision.shadows());
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(3);
    }

    @Test
    void takenContainsAllChargesOfAnAllowedCallAndNoneOfADeniedOne() {
        Throttlers throttlers = throttlers(GLOBAL, USER.withMode(Mode.SHADOW));
        List<Charge> charges = List.of(Charge.of(GLOBAL, "", 10), charge(throttlers, "per-user", "alice"));

        Decision allowed = throttlers.decide(charges);
        Decision denied = throttlers.decide(charges);

        assertThat(allowed.taken()).extracting(Answer::charge).containsExactlyElementsOf(charges);
        assertThat(denied.taken()).isEmpty();
        throttlers.giveBack(allowed.taken());
        assertThat(throttlers.snapshot("global").available()).isEqualTo(10);
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(3);
    }

    @Test
    void theListenerGetsEachPolicyAndPoliciesAddedLater() {
        Events events = new Events();
        Throttlers throttlers = new Throttlers(List.of(GLOBAL, USER), BucketStore.local(time), time, events);

        throttlers.add(BOTH);

        assertThat(events.reported).containsExactly("global added", "per-user added", "per-user-per-endpoint added");
        assertThatIllegalArgumentException().isThrownBy(() -> throttlers.add(BOTH));
        assertThat(events.reported).hasSize(3);
    }

    @Test
    void everyPolicyThatMissesItsKeyIsNamed() {
        Decision decision =
                throttlers(USER, BOTH).decide(List.of(Charge.withoutKey(BOTH, 1), Charge.withoutKey(USER, 1)));

        assertThat(policies(decision)).containsExactly("per-user-per-endpoint", "per-user");
    }

    @Test
    void aChargeWithoutItsKeyIsNeverAllowedAndTakesNothing() {
        Throttlers throttlers = throttlers(GLOBAL, USER, BOTH);
        Charge withoutKey = Charge.withoutKey(USER, 1);
        Decision decision =
                throttlers.decide(List.of(throttlers.global("global").charge(1), withoutKey));
        assertThat(decision.outcome()).isEqualTo(Outcome.MISSING_KEY);
        assertThat(decision.retryAfter()).isZero();
        assertThat(decision.denials()).extracting(Answer::charge).containsExactly(withoutKey);
        assertThat(decisions).containsExactly(decision);
        assertThat(throttlers.snapshot("global").available()).isEqualTo(10);
    }

    @Test
    void aShadowPolicyWithoutItsKeyDeniesNoCall() {
        Throttlers throttlers = throttlers(GLOBAL, USER.withMode(Mode.SHADOW));
        Charge withoutKey = Charge.withoutKey(USER.withMode(Mode.SHADOW), 1);
        assertThat(throttlers
                        .decide(List.of(withoutKey, throttlers.global("global").charge(1)))
                        .allowed())
                .isTrue();
        assertThat(decisions).extracting(Decision::outcome).containsExactly(Outcome.ALLOWED, Outcome.MISSING_KEY);
    }

    @Test
    void aBucketCanBeSeenAndReset() {
        Throttlers throttlers = throttlers(GLOBAL, BOTH);
        assertThat(throttlers.global("global").tryAcquire(4)).isTrue();
        assertThat(throttlers
                        .get("per-user-per-endpoint")
                        .forKey("alice", "GET /x")
                        .tryAcquire(2))
                .isTrue();
        assertThat(throttlers.snapshot("global"))
                .isEqualTo(new BucketSnapshot(10, Rate.of("10/s"), 6, Duration.ofMillis(100), Duration.ofMillis(400)));
        assertThat(throttlers
                        .snapshot("per-user-per-endpoint", "ALICE", "get /X")
                        .available())
                .isZero();
        assertThat(throttlers.snapshot("per-user-per-endpoint", "bob", "GET /x").available())
                .isEqualTo(2);
        throttlers.reset("per-user-per-endpoint", "Alice", "GET /x");
        throttlers.reset("global");
        assertThat(throttlers
                        .snapshot("per-user-per-endpoint", "alice", "GET /x")
                        .available())
                .isEqualTo(2);
        assertThat(throttlers.snapshot("global").available()).isEqualTo(10);
    }

    @Test
    void aPolicyThatWasUsedButNeverAddedHasSnapshotsAndResets() {
        Throttlers throttlers = throttlers(GLOBAL);
        assertThat(throttlers.decide(List.of(Charge.of(USER, "alice", 2))).allowed())
                .isTrue();
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(1);
        throttlers.reset("per-user", "alice");
        assertThat(throttlers.snapshot("per-user", "alice").available()).isEqualTo(3);
    }

    @Test
    void snapshotAndResetNeedAKnownPolicyAndKey() {
        Throttlers throttlers = throttlers(GLOBAL, USER);
        assertThatExceptionOfType(UnknownPolicyException.class).isThrownBy(() -> throttlers.snapshot("none"));
        assertThatExceptionOfType(UnknownPolicyException.class).isThrownBy(() -> throttlers.reset("none"));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.snapshot("per-user"))
                .withMessage("the key of 'per-user' must be of 1 (user), but was of 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttlers.reset("global", "alice"))
                .withMessage("the policy 'global' is global and has no keys");
    }

    /** S2.7: the retry time is the longest one plus the jitter of its policy, both bounds included. */
    @Test
    void theRetryTimeIsTheLongestWaitAndTheJitterOfItsPolicy() {
        Throttlers throttlers = throttlers(
                GLOBAL.withRetryJitter(RetryJitter.of("100ms-200ms")), USER.withRetryJitter(RetryJitter.of("1ms-3ms")));
        List<Charge> charges = List.of(
                throttlers.global("global").charge(10),
                throttlers.get("per-user").forKey("alice").charge(3));
        assertThat(throttlers.decide(charges).retryAfter()).isZero();
        TreeSet<Long> added = new TreeSet<>();
        for (int i = 0; i < 500; i++) {
            Decision decision = throttlers.decide(charges);
            assertThat(decision.answers())
                    .extracting(answer -> answer.retryNanos())
                    .containsExactly(1_000_000_000L, 3_000_000_000L);
            added.add(decision.retryAfter().minusSeconds(3).toNanos());
        }
        assertThat(added).containsExactly(1_000_000L, 2_000_000L, 3_000_000L);
    }

    @Test
    void aCostThatNeverFitsHasNoRetryTimeAndNoJitter() {
        Throttlers throttlers = throttlers(USER.withRetryJitter(RetryJitter.of("1ms-3ms")));
        Decision decision = throttlers.get("per-user").forKey("alice").decide(4);
        assertThat(decision.outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(decision.retryAfter()).isZero();
    }

    @Test
    void denialsAreInTheOrderOfTheCharges() {
        Throttlers throttlers = throttlers(GLOBAL, USER, BOTH);
        List<Charge> charges = List.of(
                charge(throttlers, "per-user-per-endpoint", "alice", "GET /x"),
                charge(throttlers, "per-user", "alice"),
                throttlers.global("global").charge(1));
        assertThat(throttlers
                        .get("per-user-per-endpoint")
                        .forKey("alice", "GET /x")
                        .tryAcquire(2))
                .isTrue();
        assertThat(throttlers.global("global").tryAcquire(10)).isTrue();
        assertThat(throttlers.decide(charges).denials())
                .extracting(Answer::policy)
                .containsExactly(BOTH, GLOBAL);
    }

    @Test
    void theDecisiveDenialIsTheFirstWithTheOutcomeOfTheWhole() {
        Throttlers throttlers = throttlers(GLOBAL, USER);
        Charge global = throttlers.global("global").charge(10);
        Charge tooMuch = throttlers.get("per-user").forKey("alice").charge(4);
        assertThat(throttlers.global("global").tryAcquire(10)).isTrue();
        assertThat(throttlers.decide(List.of(global, tooMuch)).decisiveDenial().charge())
                .isEqualTo(tooMuch);
        assertThat(throttlers.decide(List.of(global)).decisiveDenial().charge()).isEqualTo(global);
        Decision allowed = throttlers.get("per-user").forKey("bob").decide(1);
        assertThatIllegalStateException().isThrownBy(allowed::decisiveDenial);
    }

    @Test
    void theListsOfADecisionCanNotBeChanged() {
        Throttlers throttlers = throttlers(GLOBAL);
        Decision decision = throttlers.global("global").decide(1);
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(() -> decision.answers().set(0, decision.answers().get(0)));
    }

    @Test
    void aTierHasItsOwnBucketsAndRate() {
        Throttler work = throttlers(GLOBAL.withTiers(Map.of("low", BucketSpec.of("2/s"), "high", BucketSpec.of("3/s"))))
                .global("global");
        assertThat(work.inTier("low").tryAcquire(2)).isTrue();
        assertThat(work.inTier("low").tryAcquire(1)).isFalse();
        assertThat(work.inTier("low").inTier("high").tryAcquire(3)).isTrue();
        assertThat(work.tryAcquire(10)).isTrue();
        time.advance(Duration.ofSeconds(1));
        assertThat(work.inTier("low").decide(3).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(work.inTier("low").tryAcquire(2)).isTrue();
    }

    @Test
    void aTierThatThePolicyDoesNotHaveIsThePolicyItself() {
        Throttler alice = throttlers(USER.withTiers(Map.of("pro", BucketSpec.of("9/s"))))
                .get("per-user")
                .forKey("alice");
        assertThat(alice.inTier("free").tryAcquire(3)).isTrue();
        assertThat(alice.tryAcquire(1)).isFalse();
        assertThat(alice.inTier("pro").tryAcquire(9)).isTrue();
    }

    @Test
    void aThrottlerOfAKeyInATierShowsAndForgetsTheBucketThere() {
        Throttlers throttlers =
                throttlers(USER.withTiers(Map.of("pro", BucketSpec.of("1/s").withCapacity(9))));
        Throttler alice = throttlers.get("per-user").forKey("alice");
        alice.inTier("pro").decide(4);
        alice.decide(1);

        assertThat(alice.inTier("pro").snapshot().available()).isEqualTo(5);
        assertThat(alice.snapshot().available()).isEqualTo(2);
        alice.inTier("pro").reset();
        assertThat(alice.inTier("pro").snapshot().available()).isEqualTo(9);
        assertThat(alice.snapshot().available()).isEqualTo(2);
    }

    @Test
    void onlyAKeyThatSharesABucketCausesAnOverflowEvent() {
        Events events = new Events();
        Throttlers throttlers = new Throttlers(List.of(USER.withMaxKeys(2)), BucketStore.local(time), time, events);
        events.reported.clear();
        for (String user : List.of("alice", "bob", "carol", "alice", "dave", "bob", "carol")) {
            throttlers.get("per-user").forKey(user).decide(1);
        }

        assertThat(events.reported).containsExactly("per-user OVERFLOW", "per-user OVERFLOW", "per-user OVERFLOW");
        assertThat(throttlers.size("per-user")).isEqualTo(2 + 2);
    }

    @Test
    void anAnswerInPlaceOfABackendThatFailedIsAnEvent() {
        Events events = new Events();
        Throttlers throttlers = new Throttlers(List.of(GLOBAL, USER), new Failing(), time, events);
        events.reported.clear();

        throttlers.decide(List.of(charge(throttlers, "per-user", "alice"), charge(throttlers, "global")));

        assertThat(events.reported).containsExactly("per-user BACKEND_FAILURE");
        assertThat(throttlers.size("per-user")).isZero();
    }

    private static final class Events implements ThrottleListener {

        private final List<String> reported = new ArrayList<>();

        @Override
        public void decided(Decision decision) {}

        @Override
        public @Nullable PolicyListener added(PolicyThrottler throttler) {
            reported.add(throttler.policy().name() + " added");
            return null;
        }

        @Override
        public void eventOccurred(ThrottlePolicy policy, ThrottleListener.Event event) {
            reported.add(policy.name() + " " + event);
        }
    }

    /** A store that can't reach the buckets of policies with a key, and whose fallback allows the call. */
    private static final class Failing implements BucketStore {

        @Override
        public Decision take(List<Charge> charges) {
            return Decision.of(charges.stream().map(Failing::answer).toList());
        }

        private static Answer answer(Charge charge) {
            Answer answer = Answer.allowed(charge);
            return charge.policy().isGlobal() ? answer : answer.asFallback(charge);
        }

        @Override
        public Decision reserve(List<Charge> charges) {
            return take(charges);
        }

        @Override
        public void giveBack(List<Answer> taken) {}

        @Override
        public BucketSnapshot snapshot(Charge charge) {
            throw new BackendException("away");
        }

        @Override
        public void reset(Charge charge) {
            throw new BackendException("away");
        }
    }
}
