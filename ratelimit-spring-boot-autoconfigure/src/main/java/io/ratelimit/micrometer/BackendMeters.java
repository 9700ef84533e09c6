package io.ratelimit.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.ratelimit.Backend;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** The timers for calls of a backend, such as Redis. Thread-safe. */
public final class BackendMeters implements Backend.Listener {

    private final Timer ok;
    private final Timer failed;

    /** Registers the timers, and itself as a listener of the backend. */
    public BackendMeters(MeterRegistry registry, Backend backend) {
        this.ok = timer(registry, backend, "ok");
        this.failed = timer(registry, backend, "failed");
        backend.addListener(this);
    }

    private static Timer timer(MeterRegistry registry, Backend backend, String outcome) {
        return Timer.builder("ratelimit.backend")
                .description("Calls of the backend that holds the buckets")
                .tag("backend", backend.name().toLowerCase(Locale.ROOT))
                .tag("outcome", outcome)
                .register(registry);
    }

    @Override
    public void callCompleted(long nanos, boolean failed) {
        (failed ? this.failed : ok).record(nanos, TimeUnit.NANOSECONDS);
    }
}
