package io.ratelimit.autoconfigure;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;

/** Creates the meters, which only this package can, for benchmarks. */
public final class MeasuredMeters {

    private MeasuredMeters() {}

    /** Returns the listener that counts decisions. */
    public static ThrottleListener create(MeterRegistry registry) {
        return new RateLimitMeters(
                registry,
                policy -> "local",
                ThrottlePolicy::limitsInFlight,
                ThrottlePolicy::isGlobal,
                policy -> !policy.isGlobal());
    }
}
