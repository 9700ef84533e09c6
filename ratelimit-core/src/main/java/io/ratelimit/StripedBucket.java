package io.ratelimit;

import static io.ratelimit.Check.check;

import io.ratelimit.Reservation.Taken;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Supplier;

/** A bucket that sets tokens aside for each of several stripes, so that threads seldom meet. */
final class StripedBucket extends TokenBucket {
    /*
     * Why the tokens are lent and not split. The plain way splits the capacity and the rate among n small buckets. But
     * rates don't divide, a share may be less than a token, a stripe that is full loses its part of the refill while
     * others starve, and nobody can say any more when five tokens will be there. So there is one bucket, exact as ever,
     * and a stripe borrows from it what its threads will take next.
     *
     * A bucket is the moment at which it is full again (Level), and taking moves that moment on. So whoever takes gets a
     * stretch of the time line: from where the moment was, or from now if that is later, as long as the price. All that
     * G1 says follows from that: stretches don't overlap, and none begins before the call nor ends later than it takes
     * from empty to full after it. A share is such a stretch, taken at once and handed out in parts. While it is handed
     * out, time goes on, and what of it is past is not there any more: the bucket counts those tokens among what has
     * come back. So a share that nobody uses melts away, and what is lent is never more than what the bucket misses.
     *
     * At 10/s and a capacity of 100, full, a stripe borrows 10: the stretch of the next second. Half a second later,
     * nothing used, it has 5 left and the bucket misses 5, a hundred together. If its threads take 3 then, it has 2 left,
     * and 97 are there, to the last fraction what one bucket would have.
     *
     * Shares are opened, closed and gathered under one lock, and whatever needs the whole (a no, waiting, giving back,
     * looking) closes all of them first and then asks the bucket as if it were the only one. The clock is read after the
     * closing: no share has granted anything later than that, and nothing that is put back has melted meanwhile. While
     * nothing is lent a no needs no lock: it is enough that nobody held it while the bucket was looked at. Shares are a
     * fraction of what is left, so they shrink as the bucket empties, and the last tokens are taken as from one bucket.
     *
     * What it costs: a share melts even while others have taken tokens that lie behind it and don't come back before it
     * is gone. So there may be fewer tokens than in one bucket, if a stripe leaves its share unused. Never more.
     */

    private static final int MOST_STRIPES = 256;

    /** A share is the capacity divided by this and the stripes, at most: all together no more than a quarter. */
    private static final int PARTS = 4;

    /** A share that serves fewer calls isn't worth the lock. */
    private static final int LEAST_CALLS = 8;

    private static final int MOST_LOOKS = 8;

    private final AtomicReferenceArray<Share> shares;
    private final StampedLock lock = new StampedLock();

    /** Whether any share is there. */
    private volatile boolean lent;

    StripedBucket(BucketSpec spec, int stripes, TimeSource time) {
        super(spec, time);
        check(stripes >= 1 && stripes <= MOST_STRIPES, "stripes", "between 1 and " + MOST_STRIPES, stripes);
        this.shares = new AtomicReferenceArray<>(stripes);
    }

    @Override
    public boolean tryAcquire(long tokens) {
        return tryAcquire(tokens, (int) (Thread.currentThread().getId() % shares.length()));
    }

    boolean tryAcquire(long tokens, int stripe) {
        checkPositive(tokens);
        Share own = shares.get(stripe);
        if (own != null && own.take(tokens, time())) {
            return true;
        }
        return !lacks(tokens) && alone(() -> takeAlone(tokens, stripe));
    }

    /** Whether nothing was lent and the tokens weren't there; looks again while others take. */
    private boolean lacks(long tokens) {
        for (int i = 0; i < MOST_LOOKS; i++) {
            long stamp = lock.tryOptimisticRead();
            Level level = level();
            if (stamp != 0 && (lent || !lacks(level, tokens))) {
                return false;
            }
            if (lock.validate(stamp)) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    private boolean lacks(Level level, long tokens) {
        long before = level.fullAt();
        return !level.ticks().fits(tokens) || level.lacked(before, tokens, time().nanoTime(), 0);
    }

    private boolean takeAlone(long tokens, int stripe) {
        Share own = shares.get(stripe);
        if (own != null && own.take(tokens, time())) {
            return true;
        }
        if (own != null) {
            own.close();
        }
        long nanos = time().nanoTime();
        long rest = own == null ? 0 : own.rest(nanos);
        long price = level().ticks().of(tokens);
        return level().ticks().fits(tokens)
                && (open(stripe, price, rest, nanos) || lent && open(stripe, price, 0, gather()));
    }

    /** Takes the price, of which the stripe has a rest, and opens a new share behind it; or nothing, if it isn't there. */
    private boolean open(int stripe, long price, long rest, long nanos) {
        Level level = level();
        long left = level.ticks().full() - level.missing(nanos) + rest - price;
        if (left < 0) {
            return false;
        }
        long most = Math.min(level.ticks().full() / PARTS, left / 2) / shares.length();
        long size = most / LEAST_CALLS >= price ? most : 0;
        long end = level.takeTicks(price - rest + size, nanos);
        shares.set(stripe, size == 0 ? null : new Share(level.ticks(), end - size, end));
        lent = lent || size > 0;
        return true;
    }

    /**
     * Puts back what is left of all shares.
     *
     * @return the time
     */
    private long gather() {
        for (int i = 0; i < shares.length(); i++) {
            Share share = shares.get(i);
            if (share != null) {
                share.close();
            }
        }
        long nanos = time().nanoTime();
        long rest = 0;
        for (int i = 0; i < shares.length(); i++) {
            Share share = shares.getAndSet(i, null);
            rest += share == null ? 0 : share.rest(nanos);
        }
        level().giveBackTicks(rest);
        lent = false;
        return nanos;
    }

    private <T> T alone(Supplier<T> work) {
        long stamp = lock.writeLock();
        try {
            return work.get();
        } finally {
            lock.unlockWrite(stamp);
        }
    }

    /** With the whole bucket in one place. */
    private <T> T whole(Supplier<T> work) {
        return alone(() -> {
            gather();
            return work.get();
        });
    }

    @Override
    <T> T take(long tokens, long maxWaitNanos, Level.Result<T> result) {
        return whole(() -> super.take(tokens, maxWaitNanos, result));
    }

    @Override
    public void giveBack(long tokens) {
        whole(() -> {
            super.giveBack(tokens);
            return true;
        });
    }

    @Override
    void giveBack(Taken taken) {
        whole(() -> {
            super.giveBack(taken);
            return true;
        });
    }

    @Override
    public void reconfigure(BucketSpec spec) {
        whole(() -> {
            super.reconfigure(spec);
            return true;
        });
    }

    @Override
    public BucketSnapshot snapshot() {
        return whole(super::snapshot);
    }
}
