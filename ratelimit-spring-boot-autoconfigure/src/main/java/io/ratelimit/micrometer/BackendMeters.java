package io.ratelimit.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.ratelimit.Backend;
import io.ratelimit.BackendListener;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Times the calls of a backend, such as Redis. Thread-safe. */
public final class BackendMeters implements BackendListener {

    private final Timer ok;
    private final Timer failed;

    public BackendMeters(MeterRegistry registry, Backend backend) {
        this.ok = timer(registry, backend, "ok");
        this.failed = timer(registry, backend, "failed");
        backend.listen(this);
    }

    private static Timer timer(MeterRegistry registry, Backend backend, String outcome) {
        return Timer.builder("ratelimit.backend")
                .description("Calls of the backend that has the buckets")
                .tag("backend", backend.name().toLowerCase(Locale.ROOT))
                .tag("outcome", outcome)
                .register(registry);
    }

    @Override
    public void called(long nanos, boolean failed) {
        (failed ? this.failed : ok).record(nanos, TimeUnit.NANOSECONDS);
    }
}
