package io.ratelimit;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Expiry;
import com.github.benmanes.caffeine.cache.RemovalCause;
import com.github.benmanes.caffeine.cache.Scheduler;
import com.github.benmanes.caffeine.cache.Ticker;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The buckets of one policy by their keys. Caffeine holds them and drops the idle ones. Thread-safe. */
final class Shelf {
    /*
     * When a bucket may be forgotten. A key that is asked again after it was forgotten gets a full bucket, so forgetting
     * is only fair when the bucket is full anyway. A size limit that evicts is out: whoever drained a key would spray
     * others until it is evicted and comes back full. So time alone decides, and it is enough to wait, after the last
     * take, as long as an empty bucket takes to fill up.
     *
     * Caffeine keeps that time for each entry. An entry starts with a life of twice the time to full (a minute at
     * least); an entry found in the second half of its life gets a new one. So whoever takes from a bucket found it with
     * half a life left, more than it takes to fill up again, and in most look-ups nothing is written. Without a maximum
     * size Caffeine records no reads either, which would cost more than the bucket. What is dropped all the same in a
     * taker's hand (a thread that slept that long between look-up and take) was closed as it went, and sends the taker
     * back here.
     *
     * At max-keys a new key gets one of 4,096 overflow buckets instead, chosen by a hash that nobody outside can
     * predict: a drained key keeps its bucket, a flood locks out few, and memory is bounded. They take no room from keys. A long key
     * is kept as its 128-bit hash, in a form that Keys never makes.
     */

    private static final int LONGEST_KEY = 48;
    private static final int OVERFLOW_BUCKETS = 4096;
    private static final long SLACK = Duration.ofSeconds(2).toNanos();
    private static final long SHORTEST_HALF_LIFE = Duration.ofSeconds(30).toNanos();

    private final int maxKeys;
    private final SipHash hash;
    private final Ticker ticker;
    private final Cache<String, Level> levels;
    private final Cache<String, Level> overflow;
    private final Map<BucketSpec, Ticks> ticks = new ConcurrentHashMap<>();
    private volatile long lastCleaned;

    Shelf(int maxKeys, SipHash hash, Ticker ticker) {
        this.maxKeys = maxKeys;
        this.hash = hash;
        this.ticker = ticker;
        this.lastCleaned = ticker.read();
        this.levels = levels(ticker);
        this.overflow = levels(ticker);
    }

    private static Cache<String, Level> levels(Ticker ticker) {
        return Caffeine.newBuilder()
                .ticker(ticker)
                .scheduler(Scheduler.systemScheduler())
                .expireAfter(new Life())
                .evictionListener(Shelf::close)
                .build();
    }

    private static void close(@Nullable String key, @Nullable Level level, RemovalCause cause) {
        if (level != null) {
            level.close();
        }
    }

    /** The bucket of a charge under the charge's spec. It may be closed by the time it is asked. */
    Level level(Charge charge, long nanos) {
        String key = stored(charge.key());
        Level level = levels.getIfPresent(key);
        if (level == null && isFull()) {
            return level(overflow, overflow(charge.key()), charge.spec(), nanos);
        }
        return level != null && isOf(charge.spec(), level) ? level : open(levels, key, charge.spec(), nanos);
    }

    private Level level(Cache<String, Level> cache, String key, BucketSpec spec, long nanos) {
        Level level = cache.getIfPresent(key);
        return level != null && isOf(spec, level) ? level : open(cache, key, spec, nanos);
    }

    /** The bucket of a charge under whatever spec it is, or null: then nothing is missing from it. */
    @Nullable
    Level known(Charge charge) {
        Level level = levels.getIfPresent(stored(charge.key()));
        return level != null || !isFull() ? level : overflow.getIfPresent(overflow(charge.key()));
    }

    /** The bucket that a charge was taken from, as far as can be told, or null: then nothing is missing from it. */
    @Nullable
    Level taken(Charge charge) {
        Level level = levels.getIfPresent(stored(charge.key()));
        return level != null ? level : overflow.getIfPresent(overflow(charge.key()));
    }

    /** Like {@link #level}, but a bucket that is not there yet isn't kept: it is full. */
    Level glimpse(Charge charge, long nanos) {
        return known(charge) == null ? new Level(ticks(charge.spec(), nanos), nanos) : level(charge, nanos);
    }

    private static boolean isOf(BucketSpec spec, Level level) {
        BucketSpec there = level.ticks().spec();
        return there == spec || there.equals(spec);
    }

    private Level open(Cache<String, Level> cache, String key, BucketSpec spec, long nanos) {
        Ticks wanted = ticks(spec, nanos);
        return cache.asMap().compute(key, (sameKey, level) -> {
            if (level == null) {
                return new Level(wanted, nanos);
            }
            return isOf(spec, level) ? level : level.reopen(wanted, nanos);
        });
    }

    /** Whether there is no room for another key, also when what has expired is gone; that is tried at most once a second. */
    private boolean isFull() {
        if (levels.estimatedSize() < maxKeys) {
            return false;
        }
        long now = ticker.read();
        if (now != lastCleaned) {
            lastCleaned = now;
            levels.cleanUp();
        }
        return levels.estimatedSize() >= maxKeys;
    }

    BucketSnapshot look(Charge charge, long nanos) {
        Ticks shown = ticks(charge.spec(), nanos);
        Level level = known(charge);
        long missing = level == null ? 0 : level.missing(nanos);
        while (level != null && missing == Level.CLOSED) {
            Thread.onSpinWait();
            level = known(charge);
            missing = level == null ? 0 : level.missing(nanos);
        }
        return BucketSnapshot.of(shown, level == null ? 0 : shown.missingFrom(level.ticks(), missing), nanos);
    }

    private Ticks ticks(BucketSpec spec, long nanos) {
        return ticks.computeIfAbsent(spec, sameSpec -> Ticks.of(sameSpec, nanos));
    }

    void forget(String key) {
        levels.asMap().computeIfPresent(stored(key), (sameKey, level) -> {
            level.close();
            return null;
        });
    }

    long size() {
        levels.cleanUp();
        overflow.cleanUp();
        return levels.estimatedSize() + overflow.estimatedSize();
    }

    private String stored(String key) {
        return key.length() <= LONGEST_KEY ? key : "\0h" + hash.hash128(key);
    }

    private String overflow(String key) {
        return Long.toString(hash.hash64(key) & (OVERFLOW_BUCKETS - 1));
    }

    /** How long an entry lives, as the comment above has it. */
    private static final class Life implements Expiry<String, Level> {

        @Override
        public long expireAfterCreate(String key, Level level, long now) {
            return 2 * half(level);
        }

        @Override
        public long expireAfterUpdate(String key, Level level, long now, long left) {
            return 2 * half(level);
        }

        @Override
        public long expireAfterRead(String key, Level level, long now, long left) {
            return left < half(level) ? 2 * half(level) : left;
        }

        private static long half(Level level) {
            return Math.max(level.ticks().nanosToFull() + SLACK, SHORTEST_HALF_LIFE);
        }
    }
}
