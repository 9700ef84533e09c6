package io.ratelimit.micrometer;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleEvent;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The counters of one policy, found once. Thread-safe. */
final class PolicyMeters {

    private final Outcomes local;
    private final @Nullable Outcomes redis;
    private final Counter[] events;
    private final Timer wait;
    private volatile double lastSeen = Double.NaN;

    /** The counters of what comes from one place. */
    private record Outcomes(Counter allowed, Counter denied, Counter shadowDenied) {

        static Outcomes of(ThrottlePolicy policy, String backend, MeterRegistry registry) {
            return new Outcomes(
                    counter(policy, "allowed", backend, registry),
                    counter(policy, "denied", backend, registry),
                    counter(policy, "shadow-denied", backend, registry));
        }

        private static Counter counter(ThrottlePolicy policy, String outcome, String backend, MeterRegistry registry) {
            return Counter.builder("ratelimit.decisions")
                    .description("What policies said of the requests and calls that they were asked about")
                    .tag("policy", policy.name())
                    .tag("outcome", outcome)
                    .tag("backend", backend)
                    .register(registry);
        }
    }

    /** @param onRedis whether its buckets are there, but for what stands in for them */
    PolicyMeters(ThrottlePolicy policy, boolean onRedis, MeterRegistry registry) {
        this.local = Outcomes.of(policy, "local", registry);
        this.redis = onRedis ? Outcomes.of(policy, "redis", registry) : null;
        this.events = new Counter[ThrottleEvent.values().length];
        for (ThrottleEvent event : ThrottleEvent.values()) {
            events[event.ordinal()] = counter(policy, event, registry);
        }
        this.wait = Timer.builder("ratelimit.wait")
                .description("How long calls wait in line for their tokens")
                .tag("policy", policy.name())
                .register(registry);
    }

    private static Counter counter(ThrottlePolicy policy, ThrottleEvent event, MeterRegistry registry) {
        return Counter.builder("ratelimit.events")
                .description("What happened to policies beside their decisions")
                .tag("policy", policy.name())
                .tag("event", event.name().toLowerCase(Locale.ROOT).replace('_', '-'))
                .register(registry);
    }

    /** @param allowed whether the call may go ahead, by all policies that were asked together */
    void decided(Answer answer, boolean allowed) {
        if (allowed) {
            outcomes(answer).allowed.increment();
            recordWait(answer.decision().waitNanos());
        } else if (!answer.allowed()) {
            boolean shadow = answer.policy().mode() == Mode.SHADOW;
            Outcomes outcomes = outcomes(answer);
            (shadow ? outcomes.shadowDenied : outcomes.denied).increment();
        }
        see(answer);
    }

    private Outcomes outcomes(Answer answer) {
        return redis == null || answer.standIn() ? local : redis;
    }

    private void recordWait(long nanos) {
        if (nanos > 0) {
            wait.record(nanos, TimeUnit.NANOSECONDS);
        }
    }

    /** What a bucket in Redis had when it was last asked: nobody asks it for a meter. */
    private void see(Answer answer) {
        if (redis != null && !answer.standIn() && answer.charge().key().isEmpty()) {
            lastSeen = answer.decision().remaining();
        }
    }

    double lastSeen() {
        return lastSeen;
    }

    void happened(ThrottleEvent event) {
        events[event.ordinal()].increment();
    }
}
