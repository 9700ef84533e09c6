package io.ratelimit.micrometer;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.PolicyListener;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The meters of one policy, looked up once in the registry. Thread-safe. */
final class PolicyMeters implements PolicyListener {

    private final Outcomes local;
    private final @Nullable Outcomes remote;
    private final Counter[] events;
    private final Timer wait;
    private final @Nullable Timer held;
    private final @Nullable Counter borrowed;
    private final @Nullable Counter guaranteed;

    /** The remaining tokens after the last decision of a remote backend; NaN before the first. */
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

    /** @param backend the backend that holds the buckets; a fallback in memory can decide in place of another one */
    PolicyMeters(ThrottlePolicy policy, String backend, MeterRegistry registry) {
        this.local = Outcomes.of(policy, RateLimitMeters.LOCAL, registry);
        this.remote = backend.equals(RateLimitMeters.LOCAL) ? null : Outcomes.of(policy, backend, registry);
        this.events = new Counter[ThrottleListener.Event.values().length];
        for (ThrottleListener.Event event : ThrottleListener.Event.values()) {
            events[event.ordinal()] = counter(policy, event, registry);
        }
        this.wait = Timer.builder("ratelimit.wait")
                .description("Time that calls wait in the queue for their tokens")
                .tag("policy", policy.name())
                .register(registry);
        this.held = policy.limitsInFlight() ? held(policy, registry) : null;
        this.borrowed = policy.shares() == null ? null : served(policy, "all", registry);
        this.guaranteed = policy.shares() == null ? null : served(policy, "guaranteed", registry);
    }

    private static Counter served(ThrottlePolicy policy, String share, MeterRegistry registry) {
        return Counter.builder("ratelimit.shares")
                .description("Allowed calls, by the tokens that served them: those of all, or of a guaranteed share")
                .tag("policy", policy.name())
                .tag("share", share)
                .register(registry);
    }

    private static Timer held(ThrottlePolicy policy, MeterRegistry registry) {
        return Timer.builder("ratelimit.held")
                .description("Time that calls count as in flight")
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

    @Override
    public void decided(Decision decision, Answer answer) {
        if (decision.allowed()) {
            outcomes(answer).allowed.increment();
            Counter served = answer.isGuaranteed() ? guaranteed : borrowed;
            if (served != null) {
                served.increment();
            }
            recordWait(answer.waitNanos());
        } else if (!answer.allowed()) {
            boolean shadow = answer.policy().mode() == Mode.SHADOW;
            Outcomes outcomes = outcomes(answer);
            (shadow ? outcomes.shadowDenied : outcomes.denied).increment();
        }
        rememberRemaining(answer);
    }

    double lastRemaining() {
        return lastRemaining;
    }

    private Outcomes outcomes(Answer answer) {
        return remote == null || answer.fallback() ? local : remote;
    }

    private void recordWait(long nanos) {
        if (nanos > 0) {
            wait.record(nanos, TimeUnit.NANOSECONDS);
        }
    }

    /** Stores the remaining tokens of a bucket in a remote backend, so that a gauge needs no call of it. */
    private void rememberRemaining(Answer answer) {
        if (remote != null && !answer.fallback() && answer.charge().isCommon() && !answer.isGuaranteed()) {
            lastRemaining = answer.remaining();
        }
    }

    @Override
    public void waited(long nanos) {
        recordWait(nanos);
    }

    @Override
    public void released(long nanos) {
        if (held != null) {
            held.record(nanos, TimeUnit.NANOSECONDS);
        }
    }

    @Override
    public void eventOccurred(ThrottleListener.Event event) {
        events[event.ordinal()].increment();
    }
}
