package io.ratelimit.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import java.util.function.Supplier;

/** Creates the meters, which only this package can, for benchmarks. */
public final class MeasuredMeters {

    private MeasuredMeters() {}

    /** Returns the listener that counts decisions. */
    public static ThrottleListener create(MeterRegistry registry, Supplier<Throttlers> throttlers) {
        return new RateLimitMeters(registry, policy -> "local", throttlers);
    }
}
