package io.ratelimit;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Ticker;
import io.ratelimit.Decision.Answer;
import org.jspecify.annotations.Nullable;

/**
 * The buckets of one policy by their keys. Thread-safe.
 *
 * <p>At {@code max-keys} a new key gets one of 4,096 overflow buckets of its tier instead, chosen by a hash that nobody
 * outside can predict: a drained key keeps its bucket, a flood locks out few, and memory is bounded. A reserved key always
 * gets a bucket of its own. A long key is kept as its 128-bit hash, in a form that {@link Keys} never makes.
 */
final class Shelf {

    private static final int LONGEST_KEY = 48;
    private static final int OVERFLOW_BUCKETS = 4096;

    private final int maxKeys;
    private final SipHash hash;
    private final Ticker ticker;
    private final Levels levels;
    private final Levels overflow;
    private final long origin;
    private final Cache<BucketSpec, Ticks> ticks =
            Caffeine.newBuilder().weakValues().executor(Runnable::run).build();
    private volatile long lastCleaned;

    Shelf(int maxKeys, SipHash hash, Ticker ticker, TimeSource time) {
        this.maxKeys = maxKeys;
        this.hash = hash;
        this.ticker = ticker;
        this.origin = ticker.read();
        this.lastCleaned = origin;
        this.levels = new Levels(ticker, time);
        this.overflow = new Levels(ticker, time);
    }

    /** The bucket of a charge under the charge's spec. It may be closed by the time it is asked. */
    Level level(Charge charge, long nanos) {
        String key = stored(charge.key());
        Level level = levels.get(key);
        if (level == null && shares(charge.key())) {
            String shared = overflow(charge.key());
            return underSpec(overflow.get(shared), overflow, shared, charge, nanos);
        }
        return underSpec(level, levels, key, charge, nanos);
    }

    /** Keeps buckets also through such a wait for what was taken ahead. */
    void keepThrough(long waitNanos, Ticks ticks) {
        if (waitNanos > 0) {
            levels.keepAtLeast(waitNanos + ticks.nanosToFull());
            overflow.keepAtLeast(waitNanos + ticks.nanosToFull());
        }
    }

    /** Where tokens were taken under a charge's spec, if its bucket still counts by it. */
    static long position(Answer taken, Level level) {
        return isOf(taken.charge().spec(), level) ? taken.position() : Answer.UNKNOWN;
    }

    private Level underSpec(@Nullable Level found, Levels in, String key, Charge charge, long nanos) {
        if (found != null && isOf(charge.spec(), found)) {
            return found;
        }
        Ticks wanted = ticks(charge.spec());
        return in.open(key, wanted, nanos, in == overflow ? 0 : owed(charge, wanted, nanos));
    }

    /** What a key that gets a bucket of its own is missing already: it may have drained the one it shared. */
    private long owed(Charge charge, Ticks ticks, long nanos) {
        boolean none = overflow.size() == 0 || Keys.isReserved(charge.key());
        Level shared = none ? null : overflow.get(overflow(charge.key()));
        return shared == null ? 0 : Math.max(shared.missing(ticks, nanos), 0);
    }

    private static boolean isOf(BucketSpec spec, Level level) {
        BucketSpec there = level.ticks().spec();
        return there == spec || there.equals(spec);
    }

    /** The bucket of a charge under whatever spec it is, or null: then it is missing no more than what it owes. */
    @Nullable
    Level known(Charge charge) {
        Level level = levels.get(stored(charge.key()));
        return level != null || !shares(charge.key()) ? level : overflow.get(overflow(charge.key()));
    }

    /** The bucket that a charge was taken from, as far as can be told, or null: then nothing is missing from it. */
    @Nullable
    Level taken(Charge charge) {
        Level level = levels.get(stored(charge.key()));
        return level != null ? level : overflow.get(overflow(charge.key()));
    }

    /** Like {@link #level}, but a bucket that is not there yet isn't kept. */
    Level glimpse(Charge charge, long nanos) {
        if (known(charge) != null) {
            return level(charge, nanos);
        }
        Ticks ticks = ticks(charge.spec());
        return new Level(ticks, nanos, owed(charge, ticks, nanos));
    }

    /** Whether the bucket of a charge is one that keys share. */
    boolean isShared(Charge charge) {
        return overflow.size() > 0 && levels.get(stored(charge.key())) == null && shares(charge.key());
    }

    /** Whether a key without a bucket has to share one. */
    private boolean shares(String key) {
        return !Keys.isReserved(key) && isFull();
    }

    /** Whether there is no room for another key, also when what is due is dropped; at most once a second that is done. */
    private boolean isFull() {
        if (levels.size() < maxKeys) {
            return false;
        }
        long now = ticker.read();
        if (now != lastCleaned) {
            lastCleaned = now;
            levels.cleanUp();
        }
        return levels.size() >= maxKeys;
    }

    BucketSnapshot look(Charge charge, long nanos) {
        Ticks shown = ticks(charge.spec());
        Level level = known(charge);
        long missing = missing(level, charge, shown, nanos);
        while (missing == Level.CLOSED) {
            Thread.onSpinWait();
            level = known(charge);
            missing = missing(level, charge, shown, nanos);
        }
        return BucketSnapshot.of(shown, missing, nanos);
    }

    private long missing(@Nullable Level level, Charge charge, Ticks shown, long nanos) {
        return level == null ? owed(charge, shown, nanos) : level.missing(shown, nanos);
    }

    /** Those of one spec count from one moment, whenever they are made. They are kept while a bucket counts by them. */
    private Ticks ticks(BucketSpec spec) {
        return ticks.get(spec, sameSpec -> Ticks.of(sameSpec, origin));
    }

    /** How many specs are kept that a bucket counts by, or did not long ago. */
    long specs() {
        ticks.cleanUp();
        return ticks.estimatedSize();
    }

    void forget(String key) {
        levels.forget(stored(key));
    }

    /** The buckets held, without those that are due to be dropped. */
    long size() {
        levels.cleanUp();
        overflow.cleanUp();
        return levels.size() + overflow.size();
    }

    private String stored(String key) {
        return key.length() <= LONGEST_KEY ? key : "\0h" + hash.hash128(key);
    }

    private String overflow(String key) {
        return Keys.tierOf(key) + (hash.hash64(key) & (OVERFLOW_BUCKETS - 1));
    }
}
