package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;

/**
 * How long a call that is short of tokens may wait in line for them, and how many calls may at a time.
 *
 * @param maxWait the longest wait; zero for none, at most 365 days
 * @param queueLimit the most calls of a policy that wait at a time; the next is refused at once
 */
public record Waiting(Duration maxWait, int queueLimit) {

    /** More than anybody waits, and little enough that a bucket can count it. */
    static final Duration LONGEST = Duration.ofDays(365);

    /** The default of {@link #queueLimit()}. */
    public static final int DEFAULT_QUEUE_LIMIT = 20;

    /** Nobody waits. */
    public static final Waiting NONE = new Waiting(Duration.ZERO, DEFAULT_QUEUE_LIMIT);

    public Waiting {
        checkWait(maxWait);
        check(queueLimit >= 1, "queue-limit", "at least 1", queueLimit);
    }

    static void checkWait(Duration maxWait) {
        if (maxWait.isNegative() || maxWait.compareTo(LONGEST) > 0) {
            check(false, "max-wait", "between 0 and 365 days", Rate.textOf(maxWait));
        }
    }

    /**
     * A wait in code, which may be any: above the longest it is the longest.
     *
     * @throws IllegalArgumentException if it is negative
     */
    static Duration cut(Duration maxWait) {
        if (maxWait.isNegative()) {
            check(false, "max-wait", "zero or more", Rate.textOf(maxWait));
        }
        return maxWait.compareTo(LONGEST) > 0 ? LONGEST : maxWait;
    }

    /**
     * Reads a longest wait such as {@code 2s}, {@code 500ms} or {@code PT2S}; a number needs a unit.
     *
     * @throws IllegalArgumentException if the text is none, or is negative or above 365 days; the message says what
     *     would do
     */
    public static Duration maxWait(String text) {
        Duration maxWait = Rate.durationOf(text.strip());
        checkWait(maxWait);
        return maxWait;
    }

    /** In words: {@code at most 20 wait in line, for at most 2s}. */
    @Override
    public String toString() {
        return maxWait.isZero()
                ? "nobody waits in line"
                : "at most " + queueLimit + " wait in line, for at most " + Rate.textOf(maxWait);
    }
}
