package io.ratelimit;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * The health of a {@link Backend}.
 *
 * @param condition whether the backend can be used
 * @param since the beginning of the condition, by the machine's clock
 * @param cause the cause of a failure, without anything that clients sent; null if there is none
 */
public record BackendState(
        Condition condition, Instant since, @Nullable String cause) {

    /** The usability of a backend. */
    public enum Condition {
        /** The backend answers. */
        UP,
        /** The backend can't be reached, or is slow. It may recover without any change. */
        DOWN,
        /** The backend answers, but not correctly. Its configuration must be corrected. */
        MISCONFIGURED
    }

    /** Returns the state of a backend that answers, since now. */
    public static BackendState up() {
        return new BackendState(Condition.UP, Instant.now(), null);
    }

    /** Returns the state after a failure, since now. */
    public static BackendState failed(BackendException failure) {
        Condition condition = failure.isMisconfiguration() ? Condition.MISCONFIGURED : Condition.DOWN;
        return new BackendState(condition, Instant.now(), failure.getMessage());
    }
}
