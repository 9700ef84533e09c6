package io.ratelimit.micrometer;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The meters of one policy, looked up once in the registry. Thread-safe. */
final class PolicyMeters {

    private final Outcomes local;
    private final @Nullable Outcomes redis;
    private final Counter[] events;
    private final Timer wait;
    private volatile double lastRemaining = Double.NaN;

    /** The counters of the decisions that one backend made. */
    private record Outcomes(Counter allowed, Counter denied, Counter shadowDenied) {

        static Outcomes of(ThrottlePolicy policy, String backend, MeterRegistry registry) {
            return new Outcomes(
                    counter(policy, "allowed", backend, registry),
                    counter(policy, "denied", backend, registry),
                    counter(policy, "shadow-denied", backend, registry));
        }

        private static Counter counter(ThrottlePolicy policy, String outcome, String backend, MeterRegistry registry) {
            return Counter.builder("ratelimit.decisions")
                    .description("Decisions of policies about requests and calls")
                    .tag("policy", policy.name())
                    .tag("outcome", outcome)
                    .tag("backend", backend)
                    .register(registry);
        }
    }

    /** @param onRedis whether the policy has its buckets in Redis; a fallback can decide in place of Redis */
    PolicyMeters(ThrottlePolicy policy, boolean onRedis, MeterRegistry registry) {
        this.local = Outcomes.of(policy, "local", registry);
        this.redis = onRedis ? Outcomes.of(policy, "redis", registry) : null;
        this.events = new Counter[ThrottleListener.Event.values().length];
        for (ThrottleListener.Event event : ThrottleListener.Event.values()) {
            events[event.ordinal()] = counter(policy, event, registry);
        }
        this.wait = Timer.builder("ratelimit.wait")
                .description("Time that calls wait in the queue for their tokens")
                .tag("policy", policy.name())
                .register(registry);
    }

    private static Counter counter(ThrottlePolicy policy, ThrottleListener.Event event, MeterRegistry registry) {
        return Counter.builder("ratelimit.events")
                .description("Events of policies apart from their decisions")
                .tag("policy", policy.name())
                .tag("event", event.name().toLowerCase(Locale.ROOT).replace('_', '-'))
                .register(registry);
    }

    /** @param allowed whether all policies of the decision allowed the call */
    void decided(Answer answer, boolean allowed) {
        if (allowed) {
            outcomes(answer).allowed.increment();
            recordWait(answer.waitNanos());
        } else if (!answer.allowed()) {
            boolean shadow = answer.policy().mode() == Mode.SHADOW;
            Outcomes outcomes = outcomes(answer);
            (shadow ? outcomes.shadowDenied : outcomes.denied).increment();
        }
        rememberRemaining(answer);
    }

    private Outcomes outcomes(Answer answer) {
        return redis == null || answer.fallback() ? local : redis;
    }

    private void recordWait(long nanos) {
        if (nanos > 0) {
            wait.record(nanos, TimeUnit.NANOSECONDS);
        }
    }

    /** Stores the remaining tokens of a bucket in Redis, so that a gauge needs no call of Redis. */
    private void rememberRemaining(Answer answer) {
        if (redis != null && !answer.fallback() && answer.charge().key().isEmpty()) {
            lastRemaining = answer.remaining();
        }
    }

    /** Returns the remaining tokens after the last decision in Redis; NaN before the first. */
    double lastRemaining() {
        return lastRemaining;
    }

    void eventOccurred(ThrottleListener.Event event) {
        events[event.ordinal()].increment();
    }
}
