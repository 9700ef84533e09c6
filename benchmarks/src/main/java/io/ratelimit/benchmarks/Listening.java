package io.ratelimit.benchmarks;

import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.ratelimit.ThrottleListener;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.MeasuredListeners;
import io.ratelimit.autoconfigure.MeasuredMeters;
import java.util.List;

/** The listeners of decisions. */
public enum Listening {
    /** No listener. */
    NONE,
    /** The meters, in a registry for Prometheus. */
    METERS,
    /** The meters, and the count of the keys denied most. */
    METERS_AND_DENIED_KEYS,
    /** All listeners, including the dashboard's history. */
    ALL;

    ThrottleListener create(TimeSource time) {
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        List<ThrottleListener> all = List.of(
                MeasuredMeters.create(registry), MeasuredListeners.deniedKeys(time), MeasuredListeners.history(time));
        return ThrottleListener.of(all.subList(0, ordinal()));
    }
}
