package io.ratelimit.policy;

import io.ratelimit.Rate;
import java.time.Duration;

/**
 * The delay of a policy's rejections.
 *
 * @param time the delay; zero for none; at most one minute, since clients and proxies time out then
 */
public record RejectionDelay(Duration time) {

    /** The delay of zero. */
    public static final RejectionDelay NONE = new RejectionDelay(Duration.ZERO);

    /** @throws IllegalArgumentException if the time is negative or longer than one minute */
    public RejectionDelay {
        if (time.isNegative() || time.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException(
                    "rejection-delay must be between 0s and 1m, but was " + Rate.format(time));
        }
    }

    /**
     * Parses {@code 500ms}, {@code 2s} or {@code PT2S}. A number needs a unit.
     *
     * @throws IllegalArgumentException if the text is no duration, or outside the range; the message says what is valid
     */
    public static RejectionDelay of(String text) {
        return new RejectionDelay(Rate.parseDuration(text.strip()));
    }

    /** Returns whether there is no delay. */
    public boolean isNone() {
        return time.isZero();
    }

    /** Returns the delay as it is configured: {@code 2s}. */
    @Override
    public String toString() {
        return Rate.format(time);
    }
}
