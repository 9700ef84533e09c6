package io.ratelimit.policy;

import io.ratelimit.Rate;
import java.time.Duration;

/**
 * The longest time that one request waits for a backend. Spring would read a plain duration without a unit as milliseconds.
 * A nested type would be a group of properties in their metadata.
 */
public record Timeout(Duration duration) {

    /** @throws IllegalArgumentException if the duration is shorter than one millisecond or longer than ten seconds */
    public Timeout {
        if (duration.compareTo(Duration.ofMillis(1)) < 0 || duration.compareTo(Duration.ofSeconds(10)) > 0) {
            throw new IllegalArgumentException("timeout must be between 1ms and 10s, but was " + Rate.format(duration)
                    + ": it is the longest time that a request waits for the backend");
        }
    }

    /** Parses {@code 100ms} or {@code PT0.1S}. A number needs a unit. */
    public static Timeout of(String text) {
        return new Timeout(Rate.parseDuration(text.strip()));
    }
}
