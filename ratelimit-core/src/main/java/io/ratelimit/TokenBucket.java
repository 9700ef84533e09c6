package io.ratelimit;

import static io.ratelimit.Check.check;

/**
 * A token bucket: calls take tokens from it, time brings them back, and what isn't there can't be taken.
 *
 * <p>In any interval of length D it grants at most capacity + rate × (D + s), not counting what is given back, where s
 * is one clock step (1 ns, 1 µs for rates that no nanosecond fits) or one period for interval refill. It denies only
 * when the tokens are not there, and a denial changes nothing. A grant counts at the moment at which its call read the
 * clock. Thread-safe and lock-free; a call reads the clock once,
 * again only where it would be denied because others took meanwhile.
 */
public final class TokenBucket {

    private final TimeSource time;
    private final Level level;

    private TokenBucket(BucketSpec spec, TimeSource time) {
        this.time = time;
        long nanos = time.nanoTime();
        this.level = new Level(Ticks.of(spec, nanos), nanos);
    }

    /** A full bucket on the machine's clock. */
    public static TokenBucket of(BucketSpec spec) {
        return of(spec, TimeSource.system());
    }

    /** A full bucket on the given clock. */
    public static TokenBucket of(BucketSpec spec, TimeSource time) {
        return new TokenBucket(spec, time);
    }

    /**
     * Takes all of the tokens at once, or none. Allocates nothing.
     *
     * @return false if they are not there, or never will be because they are more than the capacity: {@link #decide}
     *     tells the two apart
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public boolean tryAcquire(long tokens) {
        checkPositive(tokens);
        return level.tryTake(tokens, time);
    }

    /**
     * Takes all of the tokens at once, or none, and says what is left or how long to wait.
     *
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public Decision decide(long tokens) {
        checkPositive(tokens);
        return level.decide(tokens, time);
    }

    /**
     * Puts tokens back that were taken and not used. A full bucket stays full.
     *
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public void giveBack(long tokens) {
        checkPositive(tokens);
        level.giveBack(tokens, time.nanoTime());
    }

    /** The bucket as it is now. */
    public BucketSnapshot snapshot() {
        long nanos = time.nanoTime();
        return BucketSnapshot.of(level.ticks(), level.missing(nanos), nanos);
    }

    private static void checkPositive(long tokens) {
        check(tokens >= 1, "tokens", "at least 1", tokens);
    }
}
