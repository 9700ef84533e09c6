package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

/**
 * A health indicator for the backend of the limits. It is down only if requests are denied because the backend fails. Where
 * a fallback decides instead, it stays up: a load balancer must not take all instances out of rotation then.
 *
 * <p>Each check probes the backend. An outage or a misconfiguration shows without traffic, and so does its end: an instance
 * out of rotation gets no requests that would show it.
 */
final class RateLimitHealthIndicator extends AbstractHealthIndicator {

    private final Throttlers throttlers;
    private final @Nullable Backend backend;
    private final Predicate<ThrottlePolicy> denies;

    /**
     * @param backend the remote backend; null if there is none
     * @param denies whether a policy denies calls while the backend fails
     */
    public RateLimitHealthIndicator(
            Throttlers throttlers, @Nullable Backend backend, Predicate<ThrottlePolicy> denies) {
        super("The health of the rate limits could not be determined");
        this.throttlers = throttlers;
        this.backend = backend;
        this.denies = denies;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        builder.up();
        List<ThrottlePolicy> remote = throttlers.all().stream()
                .filter(throttler -> throttler.policy().mode() != Mode.OFF && throttler.backend() != null)
                .map(PolicyThrottler::policy)
                .toList();
        if (backend != null && !remote.isEmpty()) {
            backend.probe();
            report(builder, backend.name(), backend.state(), remote);
        }
    }

    private void report(Health.Builder builder, String name, Backend.State state, List<ThrottlePolicy> remote) {
        List<String> denying = state.condition() == Condition.UP
                ? List.of()
                : remote.stream()
                        .filter(policy -> policy.mode() == Mode.ENFORCE && denies.test(policy))
                        .map(ThrottlePolicy::name)
                        .toList();
        builder.withDetail("backend", name)
                .withDetail("condition", state.condition())
                .withDetail("since", state.since());
        if (state.cause() != null) {
            builder.withDetail("cause", state.cause());
        }
        if (!denying.isEmpty()) {
            builder.down().withDetail("refusing", denying);
        }
    }
}
