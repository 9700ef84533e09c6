package io.ratelimit.micrometer;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.ratelimit.Backend;
import io.ratelimit.Decision;
import io.ratelimit.PolicyListener;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.policy.ConfiguredPolicies;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * A listener that records decisions and events of policies in meters. The meters of a policy are registered when the policy
 * is added. A decision costs one increment for each policy. Thread-safe.
 */
final class RateLimitMeters implements ThrottleListener {

    /** The name of the backend in memory. */
    static final String LOCAL = "local";

    private final MeterRegistry registry;
    private final Function<PolicyThrottler, String> backends;

    /** @param backends returns the name of the backend that holds the buckets of a policy; {@code local} for memory */
    RateLimitMeters(MeterRegistry registry, Function<PolicyThrottler, String> backends) {
        this.registry = registry;
        this.backends = backends;
    }

    /** Registers the meters of a policy, unless it is off and makes no decisions. */
    @Override
    public @Nullable PolicyListener added(PolicyThrottler throttler) {
        ThrottlePolicy policy = throttler.policy();
        return policy.mode() == Mode.OFF ? null : register(throttler, backends.apply(throttler));
    }

    @Override
    public void decided(Decision decision) {}

    private PolicyMeters register(PolicyThrottler throttler, String backend) {
        ThrottlePolicy policy = throttler.policy();
        boolean remote = !backend.equals(LOCAL);
        PolicyMeters meters = new PolicyMeters(policy, backend, registry);
        String name = policy.name();
        gauge(throttler, "ratelimit.queued", "Calls that wait in the queue", current -> current.waiting(name));
        if (!policy.lease().isZero()) {
            gauge(
                    throttler,
                    "ratelimit.leased",
                    "Tokens taken ahead and not used yet",
                    current -> current.leased(name));
        }
        if (policy.limitsInFlight()) {
            gauge(throttler, "ratelimit.in.flight", "Calls that count as in flight", current -> current.inFlight(name));
        }
        if (!policy.spec().hasRate()) {
            return meters;
        }
        if (policy.isGlobal()) {
            gauge(
                    throttler,
                    "ratelimit.available",
                    "Whole tokens in the bucket of a policy without a key",
                    current -> remote
                            ? meters.lastRemaining()
                            : current.snapshot(name).available());
        } else if (!remote) {
            gauge(throttler, "ratelimit.keys", "Buckets in memory", current -> current.size(name));
        }
        return meters;
    }

    private void gauge(PolicyThrottler throttler, String name, String description, ToDoubleFunction<Throttlers> value) {
        Gauge.builder(name, () -> value.applyAsDouble(throttler.throttlers()))
                .description(description)
                .tag("policy", throttler.policy().name())
                .register(registry);
    }

    /** Returns a listener that times the calls of a backend, such as Redis. Registers its timers. */
    public static Backend.Listener timers(MeterRegistry registry, Backend backend) {
        Timer ok = timer(registry, backend, "ok");
        Timer failures = timer(registry, backend, "failed");
        return (nanos, failed) -> (failed ? failures : ok).record(nanos, TimeUnit.NANOSECONDS);
    }

    private static Timer timer(MeterRegistry registry, Backend backend, String outcome) {
        return Timer.builder("ratelimit.backend")
                .description("Calls of the backend that holds the buckets")
                .tag(
                        "backend",
                        ConfiguredPolicies.kindOf(backend, backend.name().toLowerCase(Locale.ROOT)))
                .tag("outcome", outcome)
                .register(registry);
    }
}
