package io.ratelimit;

import com.github.benmanes.caffeine.cache.Scheduler;
import com.github.benmanes.caffeine.cache.Ticker;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Take.Receipt;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The buckets of one policy by their keys, and at {@code max-keys} the overflow buckets of each tier. A
 * {@linkplain Keys#reserved reserved} key never shares an overflow bucket. A long key is stored as its 128-bit hash, in
 * a form that {@link Keys} never makes. Thread-safe.
 */
final class PolicyBuckets {
    /*
     * How a key moves from an overflow bucket to its own. The key may have drained the overflow bucket, so its own
     * bucket starts short by as much; otherwise each move would refill the key. But a thread may have found the
     * overflow bucket just before the move, and would still take from it after the missing tokens were counted: one
     * extra grant for each such thread. The move therefore takes four steps. It closes the overflow bucket, counts, publishes
     * the key's own bucket, and puts a copy in the place of the closed one. A thread that holds the closed bucket looks
     * the key up again. A thread that finds the copy then checks for the key's own bucket, and finds it.
     */

    private static final int MAX_KEY_LENGTH = 48;
    private static final int OVERFLOW_BUCKETS = 4096;

    /** Shorter than any bucket is kept. */
    private static final long STALE = Duration.ofSeconds(1).toNanos();

    private final int maxKeys;
    private final SipHash hash;
    private final Ticker ticker;
    private final TimeSource time;
    private final ExpiringBuckets buckets;
    private final ExpiringBuckets overflow;
    private final Lanes lanes;
    private volatile long lastCleaned;

    PolicyBuckets(int maxKeys, SipHash hash, Ticker ticker, Scheduler scheduler, TimeSource time) {
        this.maxKeys = maxKeys;
        this.hash = hash;
        this.ticker = ticker;
        this.time = time;
        this.lastCleaned = ticker.read();
        this.buckets = new ExpiringBuckets(ticker, scheduler, time);
        this.overflow = new ExpiringBuckets(ticker, scheduler, time);
        this.lanes = new Lanes(this, time);
    }

    /** Returns the lanes of the policy, if its one bucket is a pool with guaranteed shares. */
    Lanes lanes() {
        return lanes;
    }

    /** Returns whether these buckets expire by a clock. Each store in memory has its own. */
    boolean expireBy(Ticker clock) {
        return ticker == clock;
    }

    /** Returns the bucket of a charge under the charge's spec. It may be closed by the time it is used. */
    BucketState bucket(Charge charge, long nanos) {
        long keyHash = hash.hash64(charge.key());
        BucketState bucket = buckets.get(keyHash);
        if (bucket != null && !hasSpec(bucket, charge.spec())) {
            bucket = buckets.convert(storedKey(charge.key()), bucket, buckets.scale(charge.spec()), nanos);
            if (bucket != null) {
                buckets.indexed(keyHash, bucket);
            }
        }
        return bucket != null ? bucket : lookUp(charge, keyHash, nanos);
    }

    private @Nullable BucketState indexed(Charge charge, long keyHash) {
        BucketState bucket = buckets.get(keyHash);
        return bucket != null && hasSpec(bucket, charge.spec()) ? bucket : null;
    }

    private BucketState lookUp(Charge charge, long keyHash, long nanos) {
        String key = storedKey(charge.key());
        while (true) {
            BucketState bucket = buckets.get(key);
            if (bucket != null && hasSpec(bucket, charge.spec())) {
                return buckets.indexed(keyHash, bucket);
            }
            if (bucket != null || !mustShare(charge.key())) {
                return buckets.indexed(keyHash, open(key, charge, nanos, bucket == null));
            }
            BucketState overflowBucket = overflowBucket(charge, nanos);
            if (buckets.get(key) == null) {
                return overflowBucket;
            }
        }
    }

    private BucketState open(String key, Charge charge, long nanos, boolean isNew) {
        TickScale scale = buckets.scale(charge.spec());
        if (isNew && !Keys.isReserved(charge.key())) {
            move(key, charge, scale, nanos);
        }
        return buckets.open(key, scale, nanos);
    }

    /** Like {@link #bucket}, for the policy's only key: a new bucket is full at the moment, however long ago that was. */
    BucketState bucketSince(Charge charge, long nanos) {
        buckets.open(storedKey(charge.key()), buckets.scale(charge.spec()), nanos);
        return bucket(charge, nanos);
    }

    /** Opens the key's own bucket, short of the tokens that its overflow bucket is missing. */
    private void move(String key, Charge charge, TickScale scale, long nanos) {
        overflow.replace(overflowKey(charge.key()), overflowBucket -> {
            if (overflowBucket != null) {
                return overflowBucket.replace(fullAt -> {
                    long now = time.nanoTime(); // not before closing: takes of other threads would look like a debt
                    BucketState copy = overflowBucket.copy(fullAt);
                    buckets.open(key, scale, now, BucketConversion.inherited(copy, scale, now));
                    return copy;
                });
            }
            // Not by a later clock: the call would find the bucket short of the time since its own. But a call that
            // stood still may have missed a bucket of its key that came and went.
            long now = time.nanoTime();
            buckets.open(key, scale, now - nanos < STALE ? nanos : now);
            return null;
        });
    }

    private BucketState overflowBucket(Charge charge, long nanos) {
        String key = overflowKey(charge.key());
        BucketState bucket = overflow.get(key);
        return bucket != null && hasSpec(bucket, charge.spec())
                ? bucket
                : overflow.open(key, overflow.scale(charge.spec()), nanos);
    }

    /** Keeps the bucket of a charge until it is full, even if a call takes tokens ahead for this wait next. */
    void keep(Charge charge, BucketState bucket, long waitNanos) {
        if (overflow.contains(bucket)) {
            overflow.keep(overflowKey(charge.key()), bucket, waitNanos);
        } else {
            buckets.keep(storedKey(charge.key()), bucket, waitNanos);
        }
    }

    private static boolean hasSpec(BucketState bucket, BucketSpec spec) {
        BucketSpec current = bucket.scale().spec();
        return current == spec || current.equals(spec);
    }

    /** Returns the bucket of a charge under any spec; null if there is none, neither its own nor an overflow bucket. */
    @Nullable
    BucketState find(Charge charge) {
        BucketState bucket = buckets.get(storedKey(charge.key()));
        return bucket != null || !mustShare(charge.key()) ? bucket : overflow.get(overflowKey(charge.key()));
    }

    /**
     * Returns the bucket that taken tokens go back to; null if it is full or was reset. It is the key's own bucket, also if
     * the tokens were taken from an overflow bucket before the key moved, or else that one.
     */
    @Nullable
    BucketState bucketTakenFrom(Answer taken) {
        String key = storedKey(taken.charge().key());
        while (true) {
            BucketState bucket = buckets.get(key);
            if (bucket != null) {
                boolean other = taken.receipt() instanceof Receipt receipt && !bucket.replaces(receipt.state());
                return other ? null : bucket;
            }
            if (!taken.shared()) {
                return null;
            }
            BucketState overflowBucket = overflow.get(overflowKey(taken.charge().key()));
            if (buckets.get(key) == null) {
                return overflowBucket;
            }
        }
    }

    /**
     * Returns the bucket that has to pay for a take: the one that taken tokens go back to, or if that is full, the one
     * that the key has now. It keeps its spec; a new bucket gets that of the charge.
     */
    BucketState bucketToOwe(Answer taken, long nanos) {
        BucketState bucket = indexed(taken.charge(), hash.hash64(taken.charge().key()));
        bucket = bucket == null ? bucketTakenFrom(taken) : bucket;
        bucket = bucket == null ? find(taken.charge()) : bucket;
        return bucket == null ? bucket(taken.charge(), nanos) : bucket;
    }

    /** Like {@link #bucket}, but doesn't keep a new bucket. */
    BucketState peek(Charge charge, long nanos) {
        long keyHash = hash.hash64(charge.key());
        BucketState bucket = indexed(charge, keyHash);
        if (bucket != null) {
            return bucket;
        }
        if (find(charge) != null) {
            return lookUp(charge, keyHash, nanos);
        }
        TickScale scale = (mustShare(charge.key()) ? overflow : buckets).scale(charge.spec());
        return new BucketState(scale, nanos, missingInOverflow(charge, scale, nanos));
    }

    /** Returns the ticks missing for a key without its own bucket: the key may have drained an overflow bucket. */
    private long missingInOverflow(Charge charge, TickScale scale, long nanos) {
        if (overflow.size() == 0 || Keys.isReserved(charge.key())) {
            return 0;
        }
        while (true) {
            BucketState overflowBucket = overflow.get(overflowKey(charge.key()));
            long missing = overflowBucket == null ? 0 : BucketConversion.missing(overflowBucket, scale, nanos);
            if (missing != BucketState.CLOSED) {
                return missing;
            }
            Thread.onSpinWait();
        }
    }

    boolean isOverflow(BucketState bucket) {
        return overflow.size() > 0 && overflow.contains(bucket);
    }

    private boolean mustShare(String key) {
        return !Keys.isReserved(key) && isFull();
    }

    /** Returns whether no other key has room. Evicts the buckets that are due first, at most once a second. */
    private boolean isFull() {
        if (buckets.size() < maxKeys) {
            return false;
        }
        long now = ticker.read();
        if (now != lastCleaned) {
            lastCleaned = now;
            buckets.cleanUp();
        }
        return buckets.size() >= maxKeys;
    }

    BucketSnapshot snapshot(Charge charge, long nanos) {
        TickScale scale = buckets.scale(charge.spec());
        long missing = missing(charge, scale, nanos);
        while (missing == BucketState.CLOSED) {
            Thread.onSpinWait();
            missing = missing(charge, scale, nanos);
        }
        Share share = charge.share();
        return BucketSnapshot.of(scale, missing, share == null ? 0 : share.leave(), nanos);
    }

    private long missing(Charge charge, TickScale scale, long nanos) {
        BucketState bucket = find(charge);
        return bucket == null
                ? missingInOverflow(charge, scale, nanos)
                : BucketConversion.missing(bucket, scale, nanos);
    }

    long specs() {
        return buckets.specs();
    }

    /** Forgets a key's own bucket. A key that would then start as short as its overflow bucket gets a full bucket. */
    void reset(String key) {
        lanes.reset(() -> {
            boolean wouldMove = !Keys.isReserved(key) && overflow.get(overflowKey(key)) != null;
            buckets.reset(storedKey(key), wouldMove);
        });
    }

    /** Returns the number of buckets, without those that are due to be evicted. */
    long size() {
        buckets.cleanUp();
        overflow.cleanUp();
        return buckets.size() + overflow.size() + lanes.size();
    }

    String storedKey(String key) {
        return key.length() <= MAX_KEY_LENGTH ? key : "\0h" + hash.hash128(key);
    }

    private String overflowKey(String key) {
        return Keys.tierPrefix(key) + (hash.hash64(key) & (OVERFLOW_BUCKETS - 1));
    }
}
