package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.PatientAwaits;
import io.ratelimit.remote.RoutingBucketStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two instances that share slots in one Redis. */
@Timeout(60)
class SharedSlotsTests {

    private static final ThrottlePolicy EXPORTS = ThrottlePolicy.of("exports", BucketSpec.inFlight(3), "user");
    private static final ThrottlePolicy CHAT =
            ThrottlePolicy.of("chat", BucketSpec.of("4/1h").withInFlight(2), "user");
    private static final ThrottlePolicy PATIENT =
            ThrottlePolicy.of("patient", BucketSpec.inFlight(1)).withMaxWait(Duration.ofSeconds(20));
    private static final ThrottlePolicy SHADOW =
            ThrottlePolicy.of("shadow", BucketSpec.inFlight(1)).withMode(Mode.SHADOW);
    private static final ThrottlePolicy HERE = ThrottlePolicy.of("here", BucketSpec.of("2/1h"));
    private static final List<ThrottlePolicy> POLICIES = List.of(EXPORTS, CHAT, PATIENT, SHADOW, HERE);

    private final String prefix = TestRedis.prefix();
    private final List<RedisStorage> storages = new ArrayList<>();
    private final Throttlers one = instance();
    private final Throttlers other = instance();

    private Throttlers instance() {
        TimeSource time = new SystemTimeSource();
        Deadline deadline = new Deadline(time, Duration.ofSeconds(5));
        RedisStorage storage =
                RedisStorage.withScripts(PlainClients.at(TestRedis.shared().port()), prefix, "", deadline);
        PatientAwaits.awaitSelfTest(storage);
        storages.add(storage);
        FailoverBucketStore redis = new FailoverBucketStore(
                "Redis", storage.store(), BucketStore.local(time), 1, policy -> FailureRule.DENY, deadline);
        return new Throttlers(
                POLICIES,
                new RoutingBucketStore(
                        BucketStore.local(time), redis, policy -> !policy.name().equals("here")),
                time,
                ThrottleListener.NONE);
    }

    @AfterEach
    void close() {
        for (ThrottlePolicy policy : POLICIES) {
            assertThat(one.inFlight(policy.name()) + other.inFlight(policy.name()))
                    .isZero();
        }
        storages.forEach(RedisStorage::close);
    }

    private static Decision decide(Throttlers throttlers, ThrottlePolicy policy) {
        return throttlers.decide(List.of(Charge.of(policy, policy.isGlobal() ? "" : "alice", 1)));
    }

    private static void awaitAllowed(Throttlers throttlers, ThrottlePolicy policy) {
        Awaitility.await().until(() -> {
            Decision decision = decide(throttlers, policy);
            decision.release();
            return decision.allowed();
        });
    }

    @Test
    void instancesTogetherRunAsManyCallsAsThereAreSlots() {
        List<Decision> running = List.of(decide(one, EXPORTS), decide(other, EXPORTS), decide(one, EXPORTS));
        assertThat(running).allMatch(Decision::allowed).allMatch(Decision::isInFlight);
        assertThat(running.get(2).remaining()).isZero();
        assertThat(decide(one, EXPORTS).outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(decide(other, EXPORTS).outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(one.inFlight("exports")).isEqualTo(2);
        assertThat(other.inFlight("exports")).isEqualTo(1);
        Decision bob = other.decide(List.of(Charge.of(EXPORTS, "bob", 1)));
        assertThat(bob.allowed()).isTrue();

        bob.release();
        running.get(1).release();
        awaitAllowed(one, EXPORTS);
        running.forEach(Decision::release);
        awaitAllowed(other, EXPORTS);
    }

    @Test
    void tokensAndSlotsAreTakenTogetherOrNot() {
        List<Decision> running = List.of(decide(one, CHAT), decide(other, CHAT));
        assertThat(decide(one, CHAT).outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(one.snapshot("chat", "alice").available()).isEqualTo(2);

        running.forEach(Decision::release);
        awaitAllowed(other, CHAT);
        awaitAllowed(other, CHAT);
        assertThat(decide(one, CHAT).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(one.inFlight("chat")).isZero();
    }

    @Test
    void aDenialByAnotherPolicyGivesTheSlotBack() {
        Charge here = Charge.of(HERE, "", 3);
        for (int i = 0; i < 5; i++) {
            assertThat(one.decide(List.of(Charge.of(EXPORTS, "alice", 1), here)).outcome())
                    .isEqualTo(Outcome.NEVER_FITS);
        }
        List<Decision> running = List.of(decide(one, EXPORTS), decide(one, EXPORTS), decide(one, EXPORTS));
        assertThat(running).allMatch(Decision::allowed);
        one.giveBack(running.get(0).taken());
        running.forEach(Decision::release);
    }

    @Test
    void aWaitingCallGetsTheSlotOfAnotherInstance() {
        Decision running = decide(one, PATIENT);
        CompletableFuture<Decision> waiting = CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return other.acquire(List.of(Charge.of(PATIENT, "", 1)));
                    } catch (InterruptedException interrupted) {
                        throw new AssertionError(interrupted);
                    }
                },
                work -> new Thread(work).start());
        Awaitility.await().until(() -> other.waiting("patient") == 1);

        running.release();
        Decision next = waiting.join();
        assertThat(next.allowed()).isTrue();
        next.release();
    }

    @Test
    void aShadowPolicyCountsAndRejectsNothing() {
        Decision first = decide(one, SHADOW);
        Decision second = decide(other, SHADOW);
        assertThat(first.shadows()).hasSize(1);
        assertThat(second.allowed()).isTrue();
        assertThat(second.shadows()).isEmpty();
        first.release();
        second.release();
    }

    @Test
    void fewerSlotsRevokeNothing() {
        List<Decision> running = List.of(decide(one, EXPORTS), decide(one, EXPORTS));
        for (Throttlers throttlers : List.of(one, other)) {
            throttlers.get("exports").reconfigure(BucketSpec.inFlight(1));
        }
        ThrottlePolicy changed = one.get("exports").policy();
        assertThat(decide(other, changed).allowed()).isFalse();
        running.get(0).release();
        assertThat(decide(one, changed).allowed()).isFalse();
        running.get(1).release();
        awaitAllowed(other, changed);
    }

    @Test
    void aStoreWithoutRegistersCannotLimitCallsInFlight() {
        Deadline deadline = new Deadline(TimeSource.system(), Duration.ofSeconds(5));
        RedisStorage storage =
                RedisStorage.withTransactions(PlainClients.at(TestRedis.shared().port()), prefix, "", deadline);
        storages.add(storage);
        BucketStore store = new FailoverBucketStore(
                "Redis",
                storage.store(),
                BucketStore.local(TimeSource.system()),
                1,
                policy -> FailureRule.DENY,
                deadline);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new Throttlers(List.of(EXPORTS), store, TimeSource.system(), ThrottleListener.NONE))
                .withMessageContaining("which the store of its buckets doesn't count: Redis");
    }
}
