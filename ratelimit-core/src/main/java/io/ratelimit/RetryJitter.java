package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * A random addition to the retry time, so that denied clients don't all return at once.
 *
 * @param min the minimum, in whole milliseconds
 * @param max the maximum, inclusive, in whole milliseconds; at most a day
 */
public record RetryJitter(Duration min, Duration max) {

    private static final Duration MAX = Duration.ofDays(1);

    /** The jitter that adds nothing. */
    public static final RetryJitter NONE = new RetryJitter(Duration.ZERO, Duration.ZERO);

    /** @throws IllegalArgumentException if a bound is outside its range, or the minimum exceeds the maximum */
    public RetryJitter {
        check(isWholeMillis(min), "the minimum of retry-jitter", "whole milliseconds, 0ms or more", min);
        check(isWholeMillis(max), "the maximum of retry-jitter", "whole milliseconds, 0ms or more", max);
        check(max.compareTo(MAX) <= 0, "the maximum of retry-jitter", "at most 1d", max);
        if (min.compareTo(max) > 0) {
            throw new IllegalArgumentException("the minimum of retry-jitter must not exceed its maximum, but "
                    + Rate.format(min) + " is more than " + Rate.format(max) + ": write '" + Rate.format(max) + "-"
                    + Rate.format(min) + "'");
        }
    }

    /**
     * Reads a jitter such as {@code 1ms-5ms}: the minimum and the maximum, both inclusive.
     *
     * @throws IllegalArgumentException if the text is not of that form; the message contains a correct example
     */
    public static RetryJitter of(String text) {
        int dash = text.indexOf('-');
        if (dash < 1) {
            throw new IllegalArgumentException(
                    "'" + text + "' is not a retry jitter: write the minimum and the maximum, such as '1ms-5ms'");
        }
        return new RetryJitter(
                Rate.parseDuration(text.substring(0, dash).strip()),
                Rate.parseDuration(text.substring(dash + 1).strip()));
    }

    private static boolean isWholeMillis(Duration duration) {
        return !duration.isNegative() && duration.toNanosPart() % 1_000_000 == 0;
    }

    /** Returns a random number of whole milliseconds between the bounds, inclusive, in nanoseconds. */
    long nextNanos() {
        long minMillis = min.toMillis();
        long maxMillis = max.toMillis();
        long millis =
                minMillis == maxMillis ? minMillis : ThreadLocalRandom.current().nextLong(minMillis, maxMillis + 1);
        return TimeUnit.MILLISECONDS.toNanos(millis);
    }

    /** Returns the jitter as users write it: {@code 1ms-5ms}. */
    @Override
    public String toString() {
        return Rate.format(min) + "-" + Rate.format(max);
    }
}
