package io.ratelimit;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Expiry;
import com.github.benmanes.caffeine.cache.Policy.VarExpiration;
import com.github.benmanes.caffeine.cache.Scheduler;
import com.github.benmanes.caffeine.cache.Ticker;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** Buckets by their keys, each evicted only when it is full again. Held by a Caffeine cache; thread-safe. */
final class ExpiringBuckets {
    /*
     * When a bucket may be forgotten. A key that comes back after it was forgotten gets a full bucket. Forgetting is
     * only fair when the bucket is full anyway. The simplest answer, a cache of limited size, is wrong: a client that
     * has drained its key would send other keys until its own is evicted and comes back full. Time alone decides instead.
     * After the last take it is enough to wait for as long as an empty bucket takes to fill up.
     *
     * A take doesn't write to the map, and an expiry by last access would turn each look-up into a write. Instead an entry
     * lives for twice the time that its own spec needs from empty to full, and at least a minute. A look-up in the
     * second half of that life renews it. At 600/1m and a capacity of 800 a bucket is full after 80 seconds, so it
     * lives for about 160, and a look-up writes at most once in about 80. Each look-up thus finds a bucket with half a
     * life left, which is more than it needs to fill up. The caller must read the clock before the look-up, because a
     * take counts at that moment. An eviction closes the bucket's state, so a caller that still holds it looks the key
     * up again.
     *
     * Each entry has its own life, because specs differ. One bucket of a policy may still count by a rate that was
     * changed a minute ago, and need a year to fill up, while another is full in a second. A bucket in debt to waiting
     * calls lives until it is full, and half a life more.
     *
     * The map contains the state of a bucket that was last written. ConvertedBucket leads from there to later states.
     */

    /** The second that the ticker may be late, and one more. */
    private static final long SLACK = Duration.ofSeconds(2).toNanos();

    private static final long MIN_HALF_LIFE = Duration.ofSeconds(30).toNanos();

    private static final int RECENT_SCALES = 16;

    /** A state records the time of its last write in steps of 2^30 ns, which fit in an int. */
    private static final int STEP_BITS = 30;

    /**
     * Runs Caffeine's maintenance once for all writes of 10 milliseconds: waking a thread after each write would cost
     * more than the write.
     */
    private static final Executor MAINTENANCE =
            CompletableFuture.delayedExecutor(10, TimeUnit.MILLISECONDS, ForkJoinPool.commonPool());

    private final Ticker ticker;
    private final TimeSource time;
    private final long start;
    private final Cache<String, BucketState> cache;
    private final VarExpiration<String, BucketState> expiration;
    private final BucketIndex index = new BucketIndex();
    private final Cache<BucketSpec, TickScale> scales =
            Caffeine.newBuilder().weakValues().executor(Runnable::run).build();

    /** A scale for some hashes of specs: a way past the map, which hashes all of a spec. */
    private final AtomicReferenceArray<@Nullable WeakReference<TickScale>> recentScales =
            new AtomicReferenceArray<>(RECENT_SCALES);

    /** @param time the clock at which states are converted to another spec */
    ExpiringBuckets(Ticker ticker, Scheduler scheduler, TimeSource time) {
        this.ticker = ticker;
        this.time = time;
        this.start = ticker.read();
        this.cache = Caffeine.newBuilder()
                .ticker(ticker)
                .scheduler(scheduler)
                .executor(MAINTENANCE)
                .expireAfter(new Lives())
                .<String, BucketState>evictionListener((key, state, cause) -> close(Objects.requireNonNull(state)))
                .build();
        this.expiration = cache.policy().expireVariably().orElseThrow();
    }

    /**
     * A bucket of a smaller capacity than before lives at least as long as it would have: by the larger capacity it may be far
     * from full. An update must not fail: the entry would keep a state that is closed, and its key would find no other. If a
     * clock fails, the bucket lives as long as the largest debt needs.
     */
    private final class Lives implements Expiry<String, BucketState> {

        @Override
        public long expireAfterCreate(String key, BucketState state, long now) {
            return lifetime(state, ticker.read());
        }

        @Override
        public long expireAfterUpdate(String key, BucketState state, long now, long left) {
            long own;
            try {
                own = lifetime(state, ticker.read());
            } catch (RuntimeException | Error failed) {
                own = 2 * halfLife(state.scale()) + ThrottlePolicy.LONGEST_WAIT.toNanos();
            }
            return state.backlog().larger() > 0 ? Math.max(own, left) : own;
        }

        @Override
        public long expireAfterRead(String key, BucketState state, long now, long left) {
            return left;
        }
    }

    private BucketState close(BucketState written) {
        BucketState latest = ConvertedBucket.close(written);
        index.remove(latest);
        return latest;
    }

    /**
     * Returns the bucket of a key by the key's hash, if it was {@link #indexed} under it and needn't be renewed; or
     * null. It may be closed by the time it is used.
     */
    @Nullable
    BucketState get(long keyHash) {
        BucketState state = index.get(keyHash);
        return state == null || isYoung(state) ? state : null;
    }

    /** Lets {@link #get(long)} find a bucket, and returns it. */
    BucketState indexed(long keyHash, BucketState state) {
        index.put(keyHash, state, size());
        return state;
    }

    /** Returns the bucket of a key, or null. It may be closed by the time it is used. */
    @Nullable
    BucketState get(String key) {
        BucketState state = present(key);
        return state == null || isYoung(state) || renew(key, state) ? state : null;
    }

    private @Nullable BucketState present(String key) {
        BucketState written = cache.getIfPresent(key);
        return written == null ? null : ConvertedBucket.latest(written);
    }

    private boolean isYoung(BucketState state) {
        return isYoung(state, ticker);
    }

    /**
     * Returns whether a state is in the first half of its life, though it may be almost a step older than it seems. If
     * it is open, it is kept for longer than it needs to be full.
     */
    static boolean isYoung(BucketState state, Ticker ticker) {
        return isInHalfLife(step(ticker) - state.renewedAt, halfLife(state.scale()));
    }

    /** Returns whether no half-life has passed after so many steps, though it may be almost a step more. */
    static boolean isInHalfLife(int steps, long halfLife) {
        return steps < halfLife >> STEP_BITS;
    }

    private int step() {
        return step(ticker);
    }

    private static int step(Ticker ticker) {
        return (int) (ticker.read() >> STEP_BITS);
    }

    private boolean renew(String key, BucketState state) {
        keep(key, state, 0);
        state.renewedAt = step();
        return present(key) == state;
    }

    /**
     * Keeps a bucket until it is full, even if it is in debt, or a call takes tokens ahead for this wait next.
     * Synchronized, or the shorter life could win.
     */
    synchronized void keep(String key, BucketState state, long waitNanos) {
        long nanos = Math.max(lifetime(state, ticker.read()), waitNanos + 2 * halfLife(state.scale()));
        if (expiration.getExpiresAfter(key, TimeUnit.NANOSECONDS).orElse(Long.MAX_VALUE) < nanos) {
            expiration.setExpiresAfter(key, nanos, TimeUnit.NANOSECONDS);
        }
    }

    private static long halfLife(TickScale scale) {
        return Math.max(scale.nanosToFull() + SLACK, MIN_HALF_LIFE);
    }

    private static long lifetime(BucketState state, long nanos) {
        long untilFull = state.scale().nanosUntil(state.missing(nanos), nanos) + SLACK;
        return halfLife(state.scale()) + Math.max(halfLife(state.scale()), untilFull);
    }

    /** Returns the bucket of a key: the current one, converted to the scale's spec, or a new full one. */
    BucketState open(String key, TickScale scale, long nanos) {
        return open(key, scale, nanos, new BucketState(scale, nanos));
    }

    BucketState open(String key, TickScale scale, long nanos, BucketState created) {
        return cache.asMap()
                .compute(
                        key,
                        (sameKey, written) -> written == null ? renewed(created) : converted(written, scale, nanos));
    }

    /**
     * Returns the bucket of a key, converted to the scale's spec; null if there is none.
     *
     * @param state a state of the bucket, which may be closed
     */
    @Nullable
    BucketState convert(String key, BucketState state, TickScale scale, long nanos) {
        BucketState converted = ConvertedBucket.convert(state, scale, nanos, time, step(), halfLife(scale));
        return converted != null
                ? converted
                : cache.asMap().computeIfPresent(key, (sameKey, written) -> converted(written, scale, nanos));
    }

    private BucketState converted(BucketState written, TickScale scale, long nanos) {
        return ConvertedBucket.written(written, scale, nanos, time, step(), halfLife(scale));
    }

    private BucketState renewed(BucketState state) {
        state.renewedAt = step();
        return state;
    }

    /** Replaces the bucket of a key by another one; null stands for no bucket. */
    void replace(String key, UnaryOperator<@Nullable BucketState> replacement) {
        cache.asMap().compute(key, (sameKey, state) -> {
            BucketState replaced = replacement.apply(state == null ? null : ConvertedBucket.latest(state));
            return replaced == null ? null : renewed(replaced);
        });
    }

    /** Returns the one scale of a spec, which is kept while a bucket counts by it. */
    TickScale scale(BucketSpec spec) {
        int place = (int) (31 * spec.capacity() + spec.rate().tokens()) & RECENT_SCALES - 1;
        WeakReference<TickScale> recent = recentScales.getAcquire(place);
        TickScale scale = recent == null ? null : recent.get();
        if (scale == null || !scale.spec().equals(spec)) {
            scale = scales.get(spec, sameSpec -> TickScale.of(sameSpec, start, time));
            recentScales.setRelease(place, new WeakReference<>(scale));
        }
        return scale;
    }

    /** Returns whether a bucket belongs here, by its scale: no two of these objects share one. */
    boolean contains(BucketState state) {
        return scales.getIfPresent(state.scale().spec()) == state.scale().base();
    }

    /** Returns how many specs are kept because a bucket counts by them, or did until recently. */
    long specs() {
        scales.cleanUp();
        return scales.estimatedSize();
    }

    /** Forgets a bucket, or replaces it by a full one. */
    void reset(String key, boolean keepFull) {
        cache.asMap().computeIfPresent(key, (sameKey, written) -> {
            TickScale scale = ConvertedBucket.latest(written).scale().base();
            BucketState full = keepFull ? renewed(new BucketState(scale, time.nanoTime())) : null;
            close(written); // at last, since a clock may throw
            return full;
        });
    }

    /** Returns the number of buckets, perhaps with some that are due to be evicted. */
    long size() {
        return cache.estimatedSize();
    }

    void cleanUp() {
        cache.cleanUp();
    }
}
