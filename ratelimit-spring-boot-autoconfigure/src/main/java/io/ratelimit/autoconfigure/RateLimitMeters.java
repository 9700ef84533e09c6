package io.ratelimit.autoconfigure;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.ratelimit.Backend;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
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
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * A listener that records decisions and events of policies in meters. The meters of a policy are registered when the policy
 * is added. A decision costs one increment for each policy. Thread-safe.
 *
 * @param backends returns the name of the backend that holds the buckets of a policy; {@code local} for memory
 * @param inFlight returns whether a policy, one of its tiers or one of its overrides limits how many calls are in flight
 * @param oneBucket returns whether all calls of a policy share one bucket
 * @param mayHaveKeys returns whether a policy has a key, or annotations may give one to its calls
 */
record RateLimitMeters(
        MeterRegistry registry,
        Function<PolicyThrottler, String> backends,
        Predicate<ThrottlePolicy> inFlight,
        Predicate<ThrottlePolicy> oneBucket,
        Predicate<ThrottlePolicy> mayHaveKeys)
        implements ThrottleListener {

    /** The name of the backend in memory. */
    static final String LOCAL = "local";

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
        PolicyMeters meters = new PolicyMeters(policy, backend);
        String name = policy.name();
        gauge(throttler, "ratelimit.queued", "Calls that wait in the queue", current -> current.waiting(name));
        if (!policy.lease().isZero()) {
            gauge(
                    throttler,
                    "ratelimit.leased",
                    "Tokens taken ahead and not used yet",
                    current -> current.leased(name));
        }
        if (inFlight.test(policy)) {
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
                    current -> !oneBucket.test(policy)
                            ? Double.NaN
                            : remote
                                    ? meters.lastRemaining
                                    : current.snapshot(name).available());
        }
        if (!remote && mayHaveKeys.test(policy)) {
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

    private Counter counter(String name, String description, Tags tags) {
        return Counter.builder(name).description(description).tags(tags).register(registry);
    }

    /** Returns a listener that times the calls of a backend, such as Redis. Registers its timers. */
    static Backend.Listener timers(MeterRegistry registry, Backend backend) {
        Timer ok = timer(registry, backend, "ok");
        Timer failures = timer(registry, backend, "failed");
        return (nanos, failed) -> (failed ? failures : ok).record(nanos, TimeUnit.NANOSECONDS);
    }

    private static Timer timer(MeterRegistry registry, Backend backend, String outcome) {
        String kind = ConfiguredPolicies.kindOf(backend, backend.name().toLowerCase(Locale.ROOT));
        return timer(
                registry,
                "ratelimit.backend",
                "Calls of the backend that holds the buckets",
                Tags.of("backend", kind, "outcome", outcome));
    }

    private static Timer timer(MeterRegistry registry, String name, String description, Tags tags) {
        return Timer.builder(name).description(description).tags(tags).register(registry);
    }

    /** The meters of one policy, looked up once in the registry. Thread-safe. */
    private final class PolicyMeters implements PolicyListener {

        private final String policy;
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
        private record Outcomes(Counter allowed, Counter denied, Counter shadowDenied) {}

        /** @param backend the backend that holds the buckets; a fallback in memory can decide in place of another one */
        PolicyMeters(ThrottlePolicy policy, String backend) {
            this.policy = policy.name();
            this.local = outcomes(LOCAL);
            this.remote = backend.equals(LOCAL) ? null : outcomes(backend);
            this.events = new Counter[ThrottleListener.Event.values().length];
            for (ThrottleListener.Event event : ThrottleListener.Event.values()) {
                events[event.ordinal()] = events(event);
            }
            this.wait = timer("ratelimit.wait", "Time that calls wait in the queue for their tokens");
            this.held = inFlight.test(policy) ? timer("ratelimit.held", "Time that calls count as in flight") : null;
            this.borrowed = policy.shares() == null ? null : served("all");
            this.guaranteed = policy.shares() == null ? null : served("guaranteed");
        }

        private Outcomes outcomes(String backend) {
            return new Outcomes(
                    decisions("allowed", backend), decisions("denied", backend), decisions("shadow-denied", backend));
        }

        private Counter decisions(String outcome, String backend) {
            return counter(
                    "ratelimit.decisions",
                    "Decisions of policies about requests and calls",
                    Tags.of("policy", policy, "outcome", outcome, "backend", backend));
        }

        private Counter events(ThrottleListener.Event event) {
            String name = event.name().toLowerCase(Locale.ROOT).replace('_', '-');
            return counter(
                    "ratelimit.events",
                    "Events of policies apart from their decisions",
                    Tags.of("policy", policy, "event", name));
        }

        private Timer timer(String name, String description) {
            return RateLimitMeters.timer(registry, name, description, Tags.of("policy", policy));
        }

        private Counter served(String share) {
            return counter(
                    "ratelimit.shares",
                    "Allowed calls, by the tokens that served them: those of all, or of a guaranteed share",
                    Tags.of("policy", policy, "share", share));
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

        private Outcomes outcomes(Answer answer) {
            return remote == null || answer.fallback() ? local : remote;
        }

        private void recordWait(long nanos) {
            if (nanos > 0) {
                wait.record(nanos, TimeUnit.NANOSECONDS);
            }
        }

        /**
         * Stores the remaining tokens of a bucket in a remote backend, so that a gauge needs no call of it. A denial for want
         * of a slot has neither tokens nor a time until the bucket is full, since no bucket was asked.
         */
        private void rememberRemaining(Answer answer) {
            boolean ofBucket = answer.remaining() > 0 || answer.resetNanos() > 0;
            if (remote != null
                    && ofBucket
                    && !answer.fallback()
                    && answer.charge().isCommon()
                    && !answer.isGuaranteed()) {
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
        public boolean handlesReleased() {
            return held != null;
        }

        @Override
        public void eventOccurred(ThrottleListener.Event event) {
            events[event.ordinal()].increment();
        }
    }
}
