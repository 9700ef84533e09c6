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
        check(!maxWait.isNegative() && maxWait.compareTo(LONGEST) <= 0, "max-wait", "between 0 and 365 days", maxWait);
    }
}
