package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BackendState;
import org.jspecify.annotations.Nullable;

/**
 * How a backend is.
 *
 * @param condition UP, DOWN or MISCONFIGURED
 * @param since when it became so
 * @param cause of the failure; null where there is none
 */
public record BackendView(
        String name,
        String condition,
        String since,
        @Nullable String cause) {

    static BackendView of(Backend backend) {
        BackendState state = backend.state();
        return new BackendView(
                backend.name(), state.condition().name(), state.since().toString(), state.cause());
    }
}
