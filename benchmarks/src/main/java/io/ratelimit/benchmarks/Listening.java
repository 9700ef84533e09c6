package io.ratelimit.benchmarks;

import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.micrometer.RateLimitMeters;
import java.util.function.Supplier;

/** Who is told of decisions. */
public enum Listening {
    /** Nobody. */
    NOBODY {
        @Override
        ThrottleListener create(Supplier<Throttlers> throttlers) {
            return ThrottleListener.NONE;
        }
    },
    /** The meters, in a registry for Prometheus. */
    METERS {
        @Override
        ThrottleListener create(Supplier<Throttlers> throttlers) {
            return new RateLimitMeters(
                    new PrometheusMeterRegistry(PrometheusConfig.DEFAULT), policy -> false, throttlers);
        }
    };

    abstract ThrottleListener create(Supplier<Throttlers> throttlers);
}
