package io.ratelimit;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.RemovalCause;
import com.github.benmanes.caffeine.cache.Scheduler;
import com.github.benmanes.caffeine.cache.Ticker;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Levels by their keys. Caffeine holds them, and drops those that nobody asked for as long as it takes to be full. */
final class Levels {
    /*
     * When a bucket may be forgotten. A key that is asked again after it was forgotten gets a full bucket, so forgetting
     * is only fair when the bucket is full anyway. A size limit that evicts is out: whoever drained a key would spray
     * others until it is evicted and comes back full. So time alone decides, and it is enough to wait, after the last
     * take, as long as an empty bucket takes to fill up.
     *
     * Caffeine's expiry by write is the one that costs a look-up nothing (those that go by reads record each of them),
     * but a take is no write to the map. So an entry lives for twice the longest time to full, a minute at least, and
     * one that is found in the second half of its life is written again. Whoever finds a bucket finds it with half a
     * life left, more than it takes to fill up, and most look-ups write nothing. The clock must have been read before
     * the look-up: a take counts at that moment. What is dropped all the same in a taker's hand was closed as it went,
     * and sends the taker back here.
     */

    /** The second that the ticker may be late, and one more. */
    private static final long SLACK = Duration.ofSeconds(2).toNanos();

    private static final long SHORTEST_HALF_LIFE = Duration.ofSeconds(30).toNanos();

    /** 2^30 ns: a level notes its age in steps of these, in half the room. */
    private static final int BITS_OF_A_STEP = 30;

    private final Ticker ticker;
    private final TimeSource time;
    private final Cache<String, Level> cache;
    private volatile long halfLife = SHORTEST_HALF_LIFE;

    /** @param time that levels are converted at */
    Levels(Ticker ticker, TimeSource time) {
        this.ticker = ticker;
        this.time = time;
        this.cache = Caffeine.newBuilder()
                .ticker(ticker)
                .scheduler(Scheduler.systemScheduler())
                .expireAfterWrite(Duration.ofNanos(2 * SHORTEST_HALF_LIFE))
                .evictionListener(Levels::close)
                .build();
    }

    private static void close(@Nullable String key, @Nullable Level level, RemovalCause cause) {
        if (level != null) {
            level.close();
        }
    }

    /** The level of a key, or null. It may be closed by the time it is asked. */
    @Nullable
    Level get(String key) {
        Level level = cache.getIfPresent(key);
        return level == null || isYoung(level) || renew(key, level) ? level : null;
    }

    /** Whether it is in the first half of its life for sure: it may be almost one step older than it seems. */
    private boolean isYoung(Level level) {
        return step() - level.renewedAt < halfLife >> BITS_OF_A_STEP;
    }

    private int step() {
        return (int) (ticker.read() >> BITS_OF_A_STEP);
    }

    private boolean renew(String key, Level level) {
        boolean there = cache.asMap().replace(key, level, level);
        level.renewedAt = step();
        return there;
    }

    /** The level of a key under these ticks: a new one, so much short of full, or converted if it was under others. */
    Level open(String key, Ticks ticks, long nanos, long missing) {
        keepAtLeast(ticks.nanosToFull());
        return cache.asMap().compute(key, (sameKey, level) -> {
            if (level != null && level.ticks().spec().equals(ticks.spec())) {
                return level;
            }
            Level opened = level == null ? new Level(ticks, nanos, missing) : level.reopen(ticks, time);
            opened.renewedAt = step();
            return opened;
        });
    }

    /** Keeps levels so long at least after they were taken from: what one owes comes back later than all that it holds. */
    void keepAtLeast(long nanosToFull) {
        long half = nanosToFull + SLACK;
        if (half > halfLife) {
            synchronized (this) {
                long longest = Math.max(half, halfLife);
                cache.policy().expireAfterWrite().orElseThrow().setExpiresAfter(Duration.ofNanos(2 * longest));
                halfLife = longest;
            }
        }
    }

    void forget(String key) {
        cache.asMap().computeIfPresent(key, (sameKey, level) -> {
            level.close();
            return null;
        });
    }

    /** How many there are, perhaps with some that are due to be dropped. */
    long size() {
        return cache.estimatedSize();
    }

    /** Drops what is due. */
    void cleanUp() {
        cache.cleanUp();
    }
}
