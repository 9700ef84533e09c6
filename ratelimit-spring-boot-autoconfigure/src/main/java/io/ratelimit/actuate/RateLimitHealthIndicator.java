package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BackendState;
import io.ratelimit.BackendState.Condition;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

/**
 * Tells how the backend of the limits is. It is down only where requests are refused because the backend fails: where
 * something stands in for it, no load balancer should take all instances away.
 *
 * <p>Has the backend tried out, so that an outage or a misconfiguration shows when nobody else asks, and its end as well:
 * an instance that is out of rotation gets no requests that would show it.
 */
public final class RateLimitHealthIndicator extends AbstractHealthIndicator {

    private final Throttlers throttlers;
    private final @Nullable Backend backend;
    private final Predicate<ThrottlePolicy> onBackend;
    private final Predicate<ThrottlePolicy> denies;

    /**
     * @param backend outside of this process, if there is one
     * @param onBackend which policies have their buckets there
     * @param denies which of those deny while it fails
     */
    public RateLimitHealthIndicator(
            Throttlers throttlers,
            @Nullable Backend backend,
            Predicate<ThrottlePolicy> onBackend,
            Predicate<ThrottlePolicy> denies) {
        super("Limits could not be looked at");
        this.throttlers = throttlers;
        this.backend = backend;
        this.onBackend = onBackend;
        this.denies = denies;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        builder.up();
        List<ThrottlePolicy> there = throttlers.all().stream()
                .map(Throttler::policy)
                .filter(policy -> policy.mode() != Mode.OFF && onBackend.test(policy))
                .toList();
        if (backend != null && !there.isEmpty()) {
            backend.probe();
            tell(builder, backend.name(), backend.state(), there);
        }
    }

    private void tell(Health.Builder builder, String name, BackendState state, List<ThrottlePolicy> there) {
        List<String> refusing = state.condition() == Condition.UP
                ? List.of()
                : there.stream()
                        .filter(policy -> policy.mode() == Mode.ENFORCE && denies.test(policy))
                        .map(ThrottlePolicy::name)
                        .toList();
        builder.withDetail("backend", name)
                .withDetail("condition", state.condition())
                .withDetail("since", state.since());
        if (state.cause() != null) {
            builder.withDetail("cause", state.cause());
        }
        if (!refusing.isEmpty()) {
            builder.down().withDetail("refusing", refusing);
        }
    }
}
