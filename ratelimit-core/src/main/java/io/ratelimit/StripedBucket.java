package io.ratelimit;

import static io.ratelimit.Check.check;

import io.ratelimit.Take.Receipt;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A bucket that sets tokens aside for each of several stripes, so that threads seldom write to the same place. */
final class StripedBucket extends TokenBucket {
    /*
     * Why tokens are lent and not split. The simplest way splits the capacity and the rate among n small buckets. But
     * rates don't divide, a part may be less than a token, a full stripe loses its part of the refill while others
     * starve, and the time until five tokens are available is unknown. There is one bucket instead, as exact as any, and a
     * stripe borrows from it the tokens that its threads will take next.
     *
     * A bucket is the moment at which it is full again (BucketState), and taking moves that moment on. Each take thus
     * owns a stretch of the time line: it begins at the old moment, or now if that is later, and is as long as the
     * price. The bucket's limit follows from two facts: stretches don't overlap, and none begins before its call or
     * ends later than an empty bucket takes to fill up after it. A slice is such a stretch, taken at once and handed
     * out in parts. Time passes meanwhile, and the past part of a slice is gone: the bucket counts those tokens as
     * refilled. An unused slice thus melts away, and the tokens lent are never more than the tokens missing from the
     * bucket.
     *
     * At 10/s and a capacity of 100, full, a stripe borrows 10: the stretch of the next second. Half a second later,
     * with nothing used, the slice has 5 left and the bucket is missing 5, a hundred together. If the stripe's threads
     * then take 3, the slice has 2 left and 97 tokens are available, exactly as in one bucket.
     *
     * One lock guards the opening, closing and gathering of slices. Every operation on the whole (a denial, waiting,
     * giving back, a snapshot) first closes all slices and then calls the bucket as if it were the only one. The clock
     * is read after the closing: no slice has granted tokens at a later time, and nothing that is put back has melted
     * meanwhile. While nothing is lent, a denial needs no lock: it is enough that no thread held the lock while the
     * bucket was read. A slice is a fraction of the tokens left, so slices shrink as the bucket empties, and the last
     * tokens are taken as from one bucket.
     *
     * The price: a slice melts even while other threads have taken tokens behind it, and these don't come back before
     * the slice is gone. If a stripe leaves its slice unused, there may be fewer tokens than in one bucket. Never
     * more.
     */

    private static final int MAX_STRIPES = 256;

    /** The divisor of the capacity: all slices together hold at most a quarter of it. */
    private static final int PARTS = 4;

    /** A slice that serves fewer calls isn't worth the lock. */
    private static final int MIN_CALLS = 8;

    private static final int MAX_OPTIMISTIC_READS = 8;

    private final AtomicReferenceArray<Slice> slices;
    private final StampedLock lock = new StampedLock();

    /** True while any slice is open. */
    private volatile boolean lent;

    StripedBucket(BucketSpec spec, int stripes, TimeSource time) {
        super(spec, time);
        check(stripes >= 1 && stripes <= MAX_STRIPES, "stripes", "between 1 and " + MAX_STRIPES, stripes);
        this.slices = new AtomicReferenceArray<>(stripes);
    }

    @Override
    public boolean tryAcquire(long tokens) {
        return tryAcquire(tokens, (int) (Thread.currentThread().getId() % slices.length()));
    }

    boolean tryAcquire(long tokens, int stripe) {
        checkPositive(tokens);
        Slice slice = slices.get(stripe);
        if (slice != null && slice.take(tokens, time())) {
            return true;
        }
        return !isShort(tokens) && locked(() -> takeLocked(tokens, stripe));
    }

    /** Returns whether nothing was lent and the bucket was short; reads again while other threads take. */
    private boolean isShort(long tokens) {
        for (int i = 0; i < MAX_OPTIMISTIC_READS; i++) {
            long stamp = lock.tryOptimisticRead();
            BucketState state = state();
            if (stamp != 0 && (lent || !isShort(state, tokens))) {
                return false;
            }
            if (lock.validate(stamp)) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    private boolean isShort(BucketState state, long tokens) {
        long before = state.fullAt();
        return !state.scale().fits(tokens) || state.wasShort(before, tokens, time().nanoTime(), 0);
    }

    private boolean takeLocked(long tokens, int stripe) {
        if (!state().scale().fits(tokens)) {
            return false;
        }
        Slice slice = slices.get(stripe);
        if (slice != null && slice.take(tokens, time())) {
            return true;
        }
        if (slice != null) {
            slice.close();
        }
        long nanos = time().nanoTime();
        long rest = slice == null ? 0 : slice.rest(nanos);
        long price = state().scale().price(tokens);
        return open(stripe, price, rest, nanos) || lent && open(stripe, price, 0, gather());
    }

    /**
     * Takes the price, less the rest of the stripe's slice, and opens a new slice behind it; or takes nothing. A rest above the
     * price is that of a slice whose closing ended in an error: a slice in its place could overlap others.
     */
    private boolean open(int stripe, long price, long rest, long nanos) {
        BucketState state = state();
        long left = state.scale().full() - state.missing(nanos) + rest - price;
        if (left < 0 || rest > price) {
            return false;
        }
        long maxSize = Math.min(state.scale().full() / PARTS, left / 2) / slices.length();
        long size = maxSize / MIN_CALLS >= price ? maxSize : 0;
        slices.set(stripe, null); // before the take: an error must not leave a rest that is paid for twice
        long end = state.takeTicks(price - rest + size, nanos);
        slices.set(stripe, size == 0 ? null : new Slice(state.scale(), end - size, end));
        lent = lent || size > 0;
        return true;
    }

    /** Closes all slices, puts back the rest of each, and returns the time after the closing. */
    private long gather() {
        for (int i = 0; i < slices.length(); i++) {
            Slice slice = slices.get(i);
            if (slice != null) {
                slice.close();
            }
        }
        long nanos = time().nanoTime();
        long rest = 0;
        for (int i = 0; i < slices.length(); i++) {
            Slice slice = slices.getAndSet(i, null);
            rest += slice == null ? 0 : slice.rest(nanos);
        }
        state().giveBackTicks(rest);
        lent = false;
        return nanos;
    }

    private <T> T locked(Supplier<T> work) {
        long stamp = lock.writeLock();
        try {
            return work.get();
        } finally {
            lock.unlockWrite(stamp);
        }
    }

    /** Does the work under the lock, with all slices put back. */
    private <T> T gathered(Supplier<T> work) {
        return locked(() -> {
            gather();
            return work.get();
        });
    }

    private void runGathered(Runnable work) {
        gathered(() -> {
            work.run();
            return true;
        });
    }

    @Override
    <T> T take(long tokens, long maxWaitNanos, Take.Result<T> result) {
        return gathered(() -> super.take(tokens, maxWaitNanos, result));
    }

    @Override
    void giveBack(long tokens, @Nullable Receipt receipt) {
        runGathered(() -> super.giveBack(tokens, receipt));
    }

    @Override
    public void reconfigure(BucketSpec spec) {
        runGathered(() -> super.reconfigure(spec));
    }

    @Override
    public BucketSnapshot snapshot() {
        return gathered(super::snapshot);
    }

    /** The tokens set aside for the threads of one stripe: a stretch of the time line. Thread-safe and lock-free. */
    private static final class Slice {

        private static final long CLOSED = BucketState.CLOSED;

        private static final VarHandle START;

        static {
            try {
                START = MethodHandles.lookup().findVarHandle(Slice.class, "start", long.class);
            } catch (ReflectiveOperationException impossible) {
                throw new ExceptionInInitializerError(impossible);
            }
        }

        private final TickScale scale;
        private final long end;
        private volatile long start;
        private long startAtClosing;

        Slice(TickScale scale, long start, long end) {
            this.scale = scale;
            this.start = start;
            this.end = end;
        }

        /** Takes all of the tokens, or none. Reads the clock here, since it must not be older than this slice. */
        boolean take(long tokens, TimeSource time) {
            long now = scale.at(time.nanoTime());
            long price = scale.price(tokens);
            for (long seen = start; seen != CLOSED; seen = start) {
                long next = now + Math.max(seen - now, 0) + price;
                if (next - end > 0) {
                    return false;
                }
                if (START.weakCompareAndSet(this, seen, next)) {
                    return true;
                }
            }
            return false;
        }

        /** Closes this slice for ever. For one thread at a time, like {@link #rest}. */
        void close() {
            long seen = (long) START.getAndSet(this, CLOSED);
            startAtClosing = seen == CLOSED ? startAtClosing : seen;
        }

        /** Returns the ticks left at the closing that time hasn't brought back to the bucket. */
        long rest(long nanos) {
            long now = scale.at(nanos);
            return Math.max(end - now - Math.max(startAtClosing - now, 0), 0);
        }
    }
}
