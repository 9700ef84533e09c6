package io.ratelimit.micrometer;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleEvent;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;

/**
 * Meters what policies decide. The meters of a policy are there from the moment that it is known, and a decision costs a
 * look-up and a count for each policy that was asked. Thread-safe.
 */
public final class RateLimitMeters implements ThrottleListener {

    private final MeterRegistry registry;
    private final Predicate<ThrottlePolicy> onRedis;
    private final Supplier<Throttlers> throttlers;
    private final Map<String, PolicyMeters> policies = new ConcurrentHashMap<>();

    /**
     * @param onRedis which policies have their buckets there
     * @param throttlers asked for when gauges are read
     */
    public RateLimitMeters(MeterRegistry registry, Predicate<ThrottlePolicy> onRedis, Supplier<Throttlers> throttlers) {
        this.registry = registry;
        this.onRedis = onRedis;
        this.throttlers = throttlers;
    }

    /** A policy that is off decides nothing, and has no meters. */
    @Override
    public void added(ThrottlePolicy policy) {
        if (policy.mode() != Mode.OFF) {
            meters(policy);
        }
    }

    @Override
    public void decided(Decision decision) {
        List<Answer> answers = decision.answers();
        boolean allowed = decision.allowed();
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            meters(answer.policy()).decided(answer, allowed);
        }
    }

    @Override
    public void happened(ThrottlePolicy policy, ThrottleEvent event) {
        meters(policy).happened(event);
    }

    private PolicyMeters meters(ThrottlePolicy policy) {
        PolicyMeters known = policies.get(policy.name());
        return known != null ? known : policies.computeIfAbsent(policy.name(), name -> register(policy));
    }

    private PolicyMeters register(ThrottlePolicy policy) {
        boolean away = onRedis.test(policy);
        PolicyMeters meters = new PolicyMeters(policy, away, registry);
        String name = policy.name();
        gauge(name, "ratelimit.queued", "Calls that wait in line", known -> known.waiting(name));
        if (policy.isGlobal()) {
            gauge(
                    name,
                    "ratelimit.available",
                    "Whole tokens in the one bucket of a policy without a key",
                    known -> away ? meters.lastSeen() : known.snapshot(name).available());
        } else if (!away) {
            gauge(name, "ratelimit.keys", "Buckets in memory", known -> known.size(name));
        }
        return meters;
    }

    private void gauge(String policy, String name, String description, ToDoubleFunction<Throttlers> value) {
        Gauge.builder(name, () -> value.applyAsDouble(throttlers.get()))
                .description(description)
                .tag("policy", policy)
                .register(registry);
    }
}
