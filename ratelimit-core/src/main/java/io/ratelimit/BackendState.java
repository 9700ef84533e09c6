package io.ratelimit;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * How a backend that has buckets is.
 *
 * @param condition what it is good for
 * @param since when it became so, by the machine's clock
 * @param cause of the failure, free of what clients send; null where there is none
 */
public record BackendState(
        Condition condition, Instant since, @Nullable String cause) {

    /** What a backend is good for. */
    public enum Condition {
        /** It answers. */
        UP,
        /** It can't be reached, or is slow: time may mend it. */
        DOWN,
        /** It answers, but not as it must: somebody has to mend it. */
        MISCONFIGURED
    }

    public static BackendState up() {
        return new BackendState(Condition.UP, Instant.now(), null);
    }

    public static BackendState failed(BackendException failure) {
        Condition condition = failure.isMisconfiguration() ? Condition.MISCONFIGURED : Condition.DOWN;
        return new BackendState(condition, Instant.now(), failure.getMessage());
    }
}
