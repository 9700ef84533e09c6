package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * A random addition to the retry time, so that refused clients don't all return at once.
 *
 * @param min the least addition, in whole milliseconds
 * @param max the most, inclusive, in whole milliseconds; a day at most
 */
public record RetryJitter(Duration min, Duration max) {

    private static final Duration LONGEST = Duration.ofDays(1);

    /** No addition. */
    public static final RetryJitter NONE = new RetryJitter(Duration.ZERO, Duration.ZERO);

    public RetryJitter {
        check(isWholeMillis(min), "the least retry jitter", "whole milliseconds from 0ms on", Rate.textOf(min));
        check(isWholeMillis(max), "the most retry jitter", "whole milliseconds from 0ms on", Rate.textOf(max));
        check(max.compareTo(LONGEST) <= 0, "the most retry jitter", "at most 1d", Rate.textOf(max));
        check(
                min.compareTo(max) <= 0,
                "the least retry jitter",
                "at most the most, " + Rate.textOf(max),
                Rate.textOf(min));
    }

    /**
     * Reads {@code 1ms-5ms}: the least and the most, both inclusive.
     *
     * @throws IllegalArgumentException if the text is not of that form; the message says what would do
     */
    public static RetryJitter of(String text) {
        int dash = text.indexOf('-');
        if (dash < 1) {
            throw new IllegalArgumentException(
                    "'" + text + "' is not a retry jitter: say the least and the most, such" + " as '1ms-5ms'");
        }
        return new RetryJitter(
                Rate.durationOf(text.substring(0, dash).strip()),
                Rate.durationOf(text.substring(dash + 1).strip()));
    }

    private static boolean isWholeMillis(Duration duration) {
        return !duration.isNegative() && duration.toNanosPart() % 1_000_000 == 0;
    }

    /** A random number of milliseconds between the bounds, inclusive, in nanoseconds. */
    long nextNanos() {
        long least = min.toMillis();
        long most = max.toMillis();
        long millis = least == most ? least : ThreadLocalRandom.current().nextLong(least, most + 1);
        return TimeUnit.MILLISECONDS.toNanos(millis);
    }

    /** The jitter as it is written: {@code 1ms-5ms}. */
    @Override
    public String toString() {
        return Rate.textOf(min) + "-" + Rate.textOf(max);
    }
}
