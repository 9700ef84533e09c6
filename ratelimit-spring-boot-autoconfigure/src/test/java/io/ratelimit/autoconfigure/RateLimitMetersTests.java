package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class RateLimitMetersTests {

    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", BucketSpec.of("10/1h"));
    private static final ThrottlePolicy USER = ThrottlePolicy.of("user", BucketSpec.of("2/1h"), "user");
    private static final ThrottlePolicy SHADOW =
            ThrottlePolicy.of("shadow", BucketSpec.of("1/1h"), "user").withMode(Mode.SHADOW);
    private static final ThrottlePolicy OFF =
            ThrottlePolicy.of("off", BucketSpec.of("1/1h")).withMode(Mode.OFF);
    private static final ThrottlePolicy QUEUED = ThrottlePolicy.of(
                    "queued", BucketSpec.of("1/s").withCapacity(1))
            .withMode(Mode.SHADOW)
            .withMaxWait(Duration.ofSeconds(9))
            .withQueueLimit(9);

    private final MeterRegistry registry = new SimpleMeterRegistry();
    private final ManualTimeSource time = new ManualTimeSource();
    private final RateLimitMeters meters = new RateLimitMeters(
            registry,
            throttler -> throttler.policy().name().endsWith("-redis") ? "redis" : "local",
            ThrottlePolicy::limitsInFlight,
            ThrottlePolicy::isGlobal,
            policy -> !policy.isGlobal());
    private final Throttlers throttlers =
            new Throttlers(List.of(GLOBAL, USER, SHADOW, OFF, QUEUED), BucketStore.local(time), time, meters);

    private void decide(ThrottlePolicy... policies) {
        List<Charge> charges = new ArrayList<>();
        for (ThrottlePolicy policy : policies) {
            charges.add(Charge.of(policy, policy.isGlobal() ? "" : "alice", 1));
        }
        throttlers.decide(charges);
    }

    @Test
    void thePoliciesMetersAreThereBeforeTheFirstDecision() {
        assertThat(all("global"))
                .containsExactlyInAnyOrder(
                        "ratelimit.decisions backend=local outcome=allowed",
                        "ratelimit.decisions backend=local outcome=denied",
                        "ratelimit.decisions backend=local outcome=shadow-denied",
                        "ratelimit.events event=missing-key",
                        "ratelimit.events event=overflow",
                        "ratelimit.events event=backend-failure",
                        "ratelimit.events event=exempt",
                        "ratelimit.events event=delayed",
                        "ratelimit.events event=limit-failure",
                        "ratelimit.events event=settled",
                        "ratelimit.events event=settle-failure",
                        "ratelimit.wait",
                        "ratelimit.queued",
                        "ratelimit.available");
        assertThat(all("user")).contains("ratelimit.keys").doesNotContain("ratelimit.available");
        assertThat(all("off")).isEmpty();
    }

    @Test
    void anAllowedCallCountsForAllPoliciesAndADeniedOneForThoseThatDeny() {
        decide(USER, GLOBAL);
        decide(USER, GLOBAL);
        decide(USER, GLOBAL);

        assertThat(decisions("user")).isEqualTo("allowed 2, denied 1");
        assertThat(decisions("global"))
                .as("the policy had the tokens of the denied call")
                .isEqualTo("allowed 2");
        throttlers.global("global").decide(11);
        assertThat(decisions("global")).isEqualTo("allowed 2, denied 1");
        throttlers.decide(List.of(Charge.withoutKey(USER, 1)));
        assertThat(decisions("user")).isEqualTo("allowed 2, denied 2");
    }

    @Test
    void denialsOfAShadowPolicyAreCountedApart() {
        decide(SHADOW, GLOBAL);
        decide(SHADOW, GLOBAL);
        throttlers.decide(List.of(Charge.of(USER.withMode(Mode.SHADOW), "alice", 3)));

        assertThat(decisions("shadow")).isEqualTo("allowed 1, shadow-denied 1");
        assertThat(decisions("global")).isEqualTo("allowed 2");
        assertThat(decisions("user"))
                .as("a key that an override puts into shadow mode")
                .isEqualTo("shadow-denied 1");
    }

    @Test
    void aPolicyThatIsOffIsNotCounted() {
        decide(OFF, GLOBAL);

        assertThat(all("off")).isEmpty();
        assertThat(decisions("global")).isEqualTo("allowed 1");
    }

    @Test
    void anAddedPolicyGetsItsMetersWhenItIsAdded() {
        throttlers.add(ThrottlePolicy.of("later", BucketSpec.of("1/1h")));
        assertThat(all("later")).contains("ratelimit.available", "ratelimit.decisions backend=local outcome=denied");
        assertThat(gauge("ratelimit.available", "later")).isEqualTo(1);

        decide(ThrottlePolicy.of("unknown", BucketSpec.of("1/1h")));

        assertThat(decisions("unknown")).isEqualTo("allowed 1");
    }

    @Test
    void thePolicyOfAChargeThatWasNeverAddedHasGauges() {
        decide(ThrottlePolicy.of("one", BucketSpec.of("3/1h").withInFlight(2)));
        decide(ThrottlePolicy.of("many", BucketSpec.of("3/1h"), "user"));

        assertThat(gauge("ratelimit.available", "one")).isEqualTo(2);
        assertThat(gauge("ratelimit.in.flight", "one")).isEqualTo(1);
        assertThat(gauge("ratelimit.queued", "one")).isZero();
        assertThat(gauge("ratelimit.keys", "many")).isEqualTo(1);
    }

    @Test
    void eventsAreCountedByTheirNames() {
        for (ThrottleListener.Event event : ThrottleListener.Event.values()) {
            for (int i = 0; i <= event.ordinal(); i++) {
                throttlers.listener().eventOccurred(USER, event);
            }
        }

        assertThat(List.of(
                        "missing-key",
                        "overflow",
                        "backend-failure",
                        "exempt",
                        "delayed",
                        "limit-failure",
                        "settled",
                        "settle-failure"))
                .extracting(event -> registry.get("ratelimit.events")
                        .tags("policy", "user", "event", event)
                        .counter()
                        .count())
                .containsExactly(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0);
    }

    @Test
    void gaugesShowThePresentState() throws InterruptedException {
        decide(USER, GLOBAL);
        throttlers.decide(List.of(Charge.of(USER, "bob", 1)));

        assertThat(gauge("ratelimit.available", "global")).isEqualTo(9);
        assertThat(gauge("ratelimit.keys", "user")).isEqualTo(2);
        time.advance(Duration.ofHours(1));
        assertThat(gauge("ratelimit.available", "global")).isEqualTo(10);
        throttlers.global("queued").acquire(1, Duration.ofSeconds(9));
        assertThat(gauge("ratelimit.queued", "queued")).isZero();
        throttlers.global("queued").acquire(1, Duration.ofSeconds(9));
        assertThat(gauge("ratelimit.queued", "queued"))
                .as("calls of a shadow policy that would wait")
                .isEqualTo(1);
    }

    @Test
    void onlyCallsThatWaitAreTimed() throws InterruptedException {
        for (int i = 0; i < 4; i++) {
            throttlers.global("queued").acquire(1, Duration.ofSeconds(2));
        }

        Timer wait = registry.get("ratelimit.wait").tag("policy", "queued").timer();
        assertThat(wait.count())
                .as("the first of four calls didn't wait, and the last was denied")
                .isEqualTo(2);
        assertThat(wait.totalTime(TimeUnit.MILLISECONDS)).isEqualTo(3000);
    }

    @Test
    void decisionsOfAPolicyOnRedisAreCountedByTheirBackend() {
        ThrottlePolicy shared = ThrottlePolicy.of("shared-redis", BucketSpec.of("3/1h"));
        throttlers.add(shared);
        assertThat(gauge("ratelimit.available", "shared-redis"))
                .as("a gauge doesn't call Redis")
                .isNaN();
        assertThat(all("shared-redis")).doesNotContain("ratelimit.keys");

        decide(shared);
        assertThat(gauge("ratelimit.available", "shared-redis"))
                .as("the tokens after the last decision")
                .isEqualTo(2);
        throttlers.global("shared-redis").decide(1);
        Answer answer = throttlers.global("shared-redis").decide(2).answers().get(0);
        throttlers.listener().decided(Decision.of(List.of(answer.asFallback(answer.charge()))));
        time.advance(Duration.ofHours(1));

        assertThat(gauge("ratelimit.available", "shared-redis")).isEqualTo(1);
        assertThat(count("shared-redis", "allowed", "redis")).isEqualTo(2);
        assertThat(count("shared-redis", "denied", "redis")).isEqualTo(1);
        assertThat(count("shared-redis", "denied", "local"))
                .as("denied by the fallback")
                .isEqualTo(1);
    }

    @Test
    void aHundredThousandKeysAddNoMeterAndNoTag() {
        List<Meter.Id> before = ids();
        for (int i = 0; i < 100_000; i++) {
            throttlers.decide(List.of(Charge.of(USER, "user" + i, 1), Charge.of(SHADOW, "user" + i, 1)));
        }

        assertThat(ids()).isEqualTo(before);
        assertThat(count("user", "allowed", "local")).isEqualTo(100_000);
    }

    private List<Meter.Id> ids() {
        return registry.getMeters().stream().map(Meter::getId).toList();
    }

    private List<String> all(String policy) {
        return ids().stream()
                .filter(id -> policy.equals(id.getTag("policy")))
                .map(id -> id.getName()
                        + id.getTags().stream()
                                .filter(tag -> !tag.getKey().equals("policy"))
                                .map(RateLimitMetersTests::text)
                                .collect(Collectors.joining()))
                .toList();
    }

    private static String text(Tag tag) {
        return " " + tag.getKey() + "=" + tag.getValue();
    }

    /** Returns the outcomes of a policy that were counted at least once. */
    private String decisions(String policy) {
        return List.of("allowed", "denied", "shadow-denied").stream()
                .filter(outcome -> count(policy, outcome, "local") > 0)
                .map(outcome -> outcome + " " + (long) count(policy, outcome, "local"))
                .collect(Collectors.joining(", "));
    }

    private double count(String policy, String outcome, String backend) {
        return registry.get("ratelimit.decisions")
                .tags("policy", policy, "outcome", outcome, "backend", backend)
                .counter()
                .count();
    }

    private double gauge(String name, String policy) {
        return registry.get(name).tag("policy", policy).gauge().value();
    }
}
