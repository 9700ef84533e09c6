package io.ratelimit.web.servlet;

import io.ratelimit.Rate;
import java.time.Duration;

/**
 * How late the refusals of a policy are answered.
 *
 * @param time zero for at once; a minute at most, for then clients and proxies have given up
 */
public record RejectionDelay(Duration time) {

    /** At once. */
    public static final RejectionDelay NONE = new RejectionDelay(Duration.ZERO);

    public RejectionDelay {
        if (time.isNegative() || time.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException(
                    "rejection-delay must be between 0s and 1m, but was " + Rate.textOf(time));
        }
    }

    /**
     * Reads {@code 500ms}, {@code 2s} or {@code PT2S}; a number needs a unit.
     *
     * @throws IllegalArgumentException if the text is no such time; the message says what would do
     */
    public static RejectionDelay of(String text) {
        return new RejectionDelay(Rate.durationOf(text.strip()));
    }

    public boolean isNone() {
        return time.isZero();
    }

    /** The delay as it is written: {@code 2s}. */
    @Override
    public String toString() {
        return Rate.textOf(time);
    }
}
