package io.ratelimit;

import com.github.benmanes.caffeine.cache.Scheduler;
import com.github.benmanes.caffeine.cache.Ticker;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Lanes.LaneReceipt;
import io.ratelimit.Take.Marked;
import io.ratelimit.Take.Receipt;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Buckets in the memory of this process, taken from one after the other; when one denies, the earlier ones get their
 * tokens back. Reads the clock once a call, and once more for a bucket that would deny.
 */
final class LocalBucketStore implements BucketStore {

    private final Clock clock;
    private final Map<String, PolicyBuckets> policies = new ConcurrentHashMap<>();

    LocalBucketStore(TimeSource time) {
        this.clock = new Clock(time);
    }

    @Override
    public Decision take(List<Charge> charges) {
        return take(charges, false);
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return take(charges, true);
    }

    private Decision take(List<Charge> charges, boolean ahead) {
        long nanos = clock.nanoTime();
        if (charges.size() == 1) {
            return Decision.of(List.of(take(charges.get(0), ahead, nanos)));
        }
        Answer[] answers = new Answer[charges.size()];
        for (int i = 0; i < answers.length; i++) {
            answers[i] = take(charges.get(i), ahead, nanos);
            if (!answers[i].allowed()) {
                giveBack(Arrays.asList(answers).subList(0, i));
                peekOthers(charges, answers, i, ahead);
                break;
            }
        }
        return Decision.of(List.of(answers));
    }

    /**
     * Takes at a moment that was read for all charges. A denial is checked again by a clock read for it alone. That
     * clock is read before the bucket is looked up again, so that the bucket is kept from this moment on, also through
     * the wait if the call takes tokens ahead.
     */
    private Answer take(Charge charge, boolean ahead, long firstNanos) {
        PolicyBuckets buckets = buckets(charge.policy());
        Share share = charge.share();
        long maxWait = ahead ? charge.maxWait().toNanos() : 0;
        if (share != null) {
            return buckets.lanes().take(charge, share, firstNanos, maxWait);
        }
        long nanos = firstNanos;
        BucketState bucket = buckets.bucket(charge, nanos);
        long returned = bucket.returned();
        long taken = bucket.take(charge.cost(), nanos, 0);
        while (taken < 0 && taken != Take.NEVER_FITS) {
            BucketState previous = bucket;
            long before = bucket.fullAt();
            // Twice what is needed now: other calls may take ahead meanwhile. The loop tries again if it is too short.
            long wait = Math.min(2 * bucket.scale().nanosUntil(-taken, nanos), maxWait);
            if (wait > 0) {
                buckets.keep(charge, bucket, wait);
            }
            nanos = clock.nanoTime();
            bucket = buckets.bucket(charge, nanos);
            returned = bucket.returned();
            taken = bucket.take(charge.cost(), nanos, wait);
            if (bucket == previous
                    && taken != BucketState.CLOSED
                    && bucket.wasShort(before, charge.cost(), nanos, maxWait)) {
                break;
            }
        }
        if (taken > bucket.scale().full()) {
            buckets.keep(charge, bucket, 0);
        }
        Receipt receipt = taken < 0 ? null : Receipt.of(bucket, charge.cost(), taken, nanos, returned);
        return new Answer(
                charge, bucket, 0, taken, nanos, maxWait, Marked.of(receipt, false, buckets.isOverflow(bucket), false));
    }

    /** Peeks at the buckets beside the one that denied, so that the decision names every bucket that is short. */
    private void peekOthers(List<Charge> charges, Answer[] answers, int denied, boolean ahead) {
        long nanos = clock.nanoTime();
        for (int i = 0; i < answers.length; i++) {
            if (i != denied) {
                answers[i] = peek(charges.get(i), ahead, nanos);
            }
        }
    }

    private Answer peek(Charge charge, boolean ahead, long nanos) {
        PolicyBuckets buckets = buckets(charge.policy());
        Share share = charge.share();
        long maxWait = ahead ? charge.maxWait().toNanos() : 0;
        if (share != null) {
            return buckets.lanes().peek(charge, share, nanos, maxWait);
        }
        while (true) {
            BucketState bucket = buckets.peek(charge, nanos);
            long result = bucket.peek(charge.cost(), nanos, maxWait);
            if (result != BucketState.CLOSED) {
                return new Answer(
                        charge,
                        bucket,
                        0,
                        result,
                        nanos,
                        maxWait,
                        Marked.of(null, false, buckets.isOverflow(bucket), false));
            }
            Thread.onSpinWait();
        }
    }

    /** Gives back the last answer first: if two takes are from one bucket, the second depends on the first. */
    @Override
    public void giveBack(List<Answer> taken) {
        for (int i = taken.size() - 1; i >= 0; i--) {
            giveBack(taken.get(i), 0);
        }
    }

    private void giveBack(Answer taken, long kept) {
        if (!taken.charge().spec().hasRate()) {
            return; // it took a slot, not a token
        }
        Share share = taken.charge().share();
        if (share != null && taken.receipt() instanceof LaneReceipt ofLane) {
            buckets(taken.policy()).lanes().giveBack(taken, share, ofLane, kept);
            return;
        }
        Receipt receipt = (Receipt) taken.receipt();
        long tokens = taken.charge().cost() - kept;
        if (receipt != null && receipt.state().giveBack(tokens, kept, receipt, 0, clock) != BucketState.CLOSED) {
            return;
        }
        PolicyBuckets buckets = buckets(taken.policy());
        BucketState bucket = buckets.bucketTakenFrom(taken);
        while (bucket != null && bucket.giveBack(tokens, kept, receipt, 0, clock) == BucketState.CLOSED) {
            Thread.onSpinWait();
            bucket = buckets.bucketTakenFrom(taken);
        }
    }

    @Override
    public boolean settle(Answer taken, long cost) {
        long more = cost - taken.charge().cost();
        if (more < 0) {
            giveBack(taken, cost);
        } else if (more > 0 && taken.charge().spec().hasRate()) {
            Lanes lanes = buckets(taken.policy()).lanes();
            lanes.pay(taken.charge(), clock.nanoTime());
            owe(taken, more);
            Share share = taken.charge().share();
            if (share != null && taken.receipt() instanceof LaneReceipt) {
                lanes.owe(share, more);
            }
        }
        return true;
    }

    /**
     * Takes the tokens from the bucket of the receipt as a call would, if the bucket has them. Otherwise puts the
     * bucket into debt, unless other keys share it. The bucket's entry is first kept until the debt is paid, since it
     * could expire between the two steps.
     */
    private void owe(Answer taken, long tokens) {
        long now = clock.nanoTime();
        if (taken.receipt() instanceof Receipt receipt
                && ExpiringBuckets.isYoung(receipt.state(), clock)
                && receipt.state().take(tokens, now, 0) >= 0) {
            return;
        }
        PolicyBuckets buckets = buckets(taken.policy());
        long missing = BucketState.CLOSED;
        while (missing == BucketState.CLOSED) {
            long nanos = clock.nanoTime();
            BucketState bucket = buckets.bucketToOwe(taken, nanos);
            boolean overflow = buckets.isOverflow(bucket);
            long debt = overflow ? 0 : bucket.debtNanos(tokens, nanos);
            if (debt > 0) {
                buckets.keep(taken.charge(), bucket, debt);
            }
            missing = bucket.owe(tokens, overflow, clock);
            if (missing > bucket.scale().full()) {
                buckets.keep(taken.charge(), bucket, 0);
            }
        }
    }

    @Override
    public BucketSnapshot snapshot(Charge charge) {
        long nanos = clock.nanoTime();
        Share share = charge.share();
        BucketSpec lane = share == null ? null : share.guaranteed();
        PolicyBuckets buckets = buckets(charge.policy());
        buckets.lanes().pay(charge, nanos);
        return share == null || lane == null
                ? buckets.snapshot(charge, nanos)
                : buckets.lanes().snapshot(share, lane, nanos);
    }

    @Override
    public void reset(Charge charge) {
        buckets(charge.policy()).reset(charge.key());
    }

    /** Returns the buckets of a policy: as its throttler has them, or by its name for a policy without a throttler. */
    PolicyBuckets buckets(ThrottlePolicy policy) {
        PolicyThrottler throttler = policy.throttler();
        PolicyBuckets known = throttler == null ? null : throttler.buckets();
        return known != null && known.expireBy(clock) ? known : named(policy, throttler);
    }

    private PolicyBuckets named(ThrottlePolicy policy, @Nullable PolicyThrottler throttler) {
        PolicyBuckets named = policies.get(policy.name());
        if (named == null) {
            named = policies.computeIfAbsent(
                    policy.name(), name -> new PolicyBuckets(policy.maxKeys(), SipHash.PROCESS, clock, clock, clock));
        }
        if (throttler != null) {
            throttler.setBuckets(named);
        }
        return named;
    }

    @Override
    public boolean keepsShares(ThrottlePolicy policy) {
        return true;
    }

    @Override
    public long size(ThrottlePolicy policy) {
        clock.nanoTime(); // moves the clock of expiry on: without calls nothing else does
        return buckets(policy).size();
    }

    /**
     * The clock by which buckets expire: the time of the latest call, at most a second late. Caffeine reads its ticker
     * at every look-up, and a real clock would cost more than the look-up itself. Thread-safe.
     */
    static final class Clock implements Ticker, Scheduler, TimeSource {

        private static final long STEP = Duration.ofSeconds(1).toNanos();

        private final TimeSource time;
        private final AtomicLong latest;

        Clock(TimeSource time) {
            this.time = time;
            this.latest = new AtomicLong(time.nanoTime());
        }

        /** Reads the time source, and moves this clock on if it is a second late. */
        @Override
        public long nanoTime() {
            long nanos = time.nanoTime();
            long seen = latest.get();
            while (nanos - seen >= STEP && !latest.compareAndSet(seen, nanos)) {
                seen = latest.get();
            }
            return nanos;
        }

        @Override
        public long wallNanos() {
            return time.wallNanos();
        }

        @Override
        public long read() {
            return latest.get();
        }

        /**
         * Schedules a clean-up on the JDK's own timer thread. Moves this clock on before the clean-up: without calls
         * nothing else moves it, and no bucket would ever be due. Refers to no bucket, so an unused store can be
         * collected.
         */
        @Override
        public Future<?> schedule(Executor executor, Runnable cleanUp, long delay, TimeUnit unit) {
            Runnable onTime = () -> {
                nanoTime();
                cleanUp.run();
            };
            return Scheduler.systemScheduler().schedule(executor, onTime, delay, unit);
        }
    }
}
