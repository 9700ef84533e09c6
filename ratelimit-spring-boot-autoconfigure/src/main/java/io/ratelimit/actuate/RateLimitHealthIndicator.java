package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BackendState;
import io.ratelimit.BackendState.Condition;
import io.ratelimit.Charge;
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
 * <p>Looks at one bucket of the backend, so that an outage shows when nobody else asks, and its end as well; but not
 * while the backend is misconfigured, as looking may go well where taking doesn't.
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
            probe(backend, there.get(0));
            tell(builder, backend.name(), backend.state(), there);
        }
    }

    private void probe(Backend backend, ThrottlePolicy policy) {
        if (backend.state().condition() != Condition.MISCONFIGURED) {
            try {
                throttlers.look(Charge.of(policy, "", 1));
            } catch (BackendException failed) {
                // the backend's state says so, if it is more than once
            }
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
