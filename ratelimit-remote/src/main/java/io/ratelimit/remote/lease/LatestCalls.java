package io.ratelimit.remote.lease;

import io.ratelimit.CompareAndSetBucketStore.BucketName;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The latest calls of buckets without leases. Two buckets may replace each other in a cell, and two of one hash count
 * as one. Either costs at most a call of the store. Thread-safe.
 */
final class LatestCalls {

    private static final int CELLS = 1 << 14;
    private static final long NANOS_PER_MICRO = 1_000;

    /** In each cell 32 bits of the hash, and the time in microseconds, of which 32 bits are 71 minutes. */
    private final AtomicLongArray cells = new AtomicLongArray(CELLS);

    /**
     * Returns the time since the latest call, and forgets that call. If it was longer ago, or none is known, this call
     * is noted and the result is negative.
     */
    long nanosSince(BucketName name, long now, Duration atMost) {
        int hash = name.hashCode() * 0x9E3779B9;
        int cell = hash >>> 18;
        int micros = (int) (now / NANOS_PER_MICRO);
        long seen = cells.get(cell);
        long nanos = Integer.toUnsignedLong(micros - (int) seen) * NANOS_PER_MICRO;
        boolean again = seen != 0 && (int) (seen >>> 32) == hash && nanos <= atMost.toNanos();
        cells.set(cell, again ? 0 : (long) hash << 32 | micros & 0xFFFFFFFFL);
        return again ? nanos : -1;
    }
}
