package io.ratelimit.failover;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Expiry;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.failover.LeasingBucketStore.Grant;
import io.ratelimit.failover.LeasingBucketStore.LeaseRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The leases of this process: tokens of remote buckets that were taken ahead, and decide calls without a call of the backend.
 *
 * <p>A bucket whose last lease is two leases old is forgotten: at its next call it is cold, and takes one price. From then on
 * each request for a lease asks for the tokens that calls use in half a lease, but for at most twice the last number and an
 * eighth of the capacity. After a request that got fewer tokens than it asked for, calls are denied from memory for a quarter
 * of a lease once the tokens are used. Thread-safe.
 */
final class Leases {

    /** The part of a lease that is used: a clock of this process may be slow by 1/1,000, compared with that of the backend. */
    private static final double VALID_PART = 0.999;

    /** The limit of buckets, of some hundred bytes each. Beyond it leases are dropped, and their tokens expire. */
    private static final long MAX_BUCKETS = 100_000;

    private static final int THREADS = 4;

    private final TimeSource time;
    private final Executor background;
    private final LeasingBucketStore store;
    private final ResilientCalls calls;
    private final Cache<BucketKey, LeasedBucket> buckets;

    /**
     * @param background makes the calls that renew leases; it may reject them
     */
    Leases(TimeSource time, LeasingBucketStore store, ResilientCalls calls, Executor background) {
        this.time = time;
        this.store = store;
        this.calls = calls;
        this.background = background;
        this.buckets = Caffeine.newBuilder()
                .ticker(time::nanoTime)
                .expireAfter(Expiry.<BucketKey, LeasedBucket>writing((key, bucket) -> bucket.lease.multipliedBy(2)))
                .maximumSize(MAX_BUCKETS)
                .build();
    }

    /** Returns a few threads for calls that renew leases. While all are busy, 1,000 calls wait at most. */
    static Executor threads() {
        AtomicInteger number = new AtomicInteger();
        ThreadPoolExecutor threads = new ThreadPoolExecutor(
                THREADS, THREADS, 10, TimeUnit.SECONDS, new ArrayBlockingQueue<>(1_000), work -> {
                    Thread thread = new Thread(work, "ratelimit-lease-" + number.incrementAndGet());
                    thread.setDaemon(true);
                    return thread;
                });
        threads.allowCoreThreadTimeOut(true);
        return threads;
    }

    /** Takes charges from the store, with requests for leases. */
    interface Taker {
        Decision take(List<Charge> charges, List<LeaseRequest> requests);
    }

    /** Tokens taken ahead. Its value is the number of tokens that are left. */
    private static final class Lease extends AtomicLong {

        private static final long serialVersionUID = 1;

        private final transient long tokens;
        private final transient long since;
        private final transient long until;
        private final transient @Nullable Grant grant;

        Lease(long tokens, long left, long since, long until, @Nullable Grant grant) {
            super(left);
            this.tokens = tokens;
            this.since = since;
            this.until = until;
            this.grant = grant;
        }

        boolean isValid(long now) {
            return now - until < 0;
        }

        /** Takes tokens at a moment that the caller read before; false if the lease hasn't so many or has ended. */
        boolean take(long cost, long now) {
            if (!isValid(now)) {
                return false;
            }
            for (long left = get(); left >= cost; left = get()) {
                if (compareAndSet(left, left - cost)) {
                    return true;
                }
            }
            return false;
        }

        Answer answer(Charge charge, long now) {
            BucketSnapshot bucket = Objects.requireNonNull(grant).bucket();
            long passed = now - since;
            BucketSnapshot shown = new BucketSnapshot(
                    bucket.capacity(),
                    bucket.rate(),
                    bucket.available() + get(),
                    later(bucket.nextTokenAfter(), passed),
                    later(bucket.resetAfter(), passed));
            return Answer.allowed(charge, shown, Duration.ZERO).withReceipt(this);
        }

        /** Returns the receipt with which tokens of this lease go back to the store. */
        Object receipt(long cost) {
            return Objects.requireNonNull(grant).receipts().apply(cost);
        }

        private static Duration later(Duration moment, long passed) {
            return moment.isZero() ? moment : Duration.ofNanos(Math.max(moment.toNanos() - passed, 1));
        }
    }

    /** The leases of one bucket, and the result of the last request for one. Thread-safe. */
    private static final class LeasedBucket {

        private final BucketSpec spec;
        private final Duration lease;
        private final AtomicBoolean asking = new AtomicBoolean();
        private volatile Lease current;
        private volatile Lease previous;
        /** The tokens of the previous lease when the current one began. */
        private volatile long carried;

        private volatile long deniedUntil;
        private volatile long deniedCost = Long.MAX_VALUE;

        LeasedBucket(Charge charge, long now) {
            this.spec = charge.spec();
            this.lease = charge.policy().lease();
            this.current = new Lease(0, 0, now, now, null);
            this.previous = current;
        }

        boolean isOf(Charge charge) {
            return spec.equals(charge.spec()) && lease.equals(charge.policy().lease());
        }

        /** Returns the lease from which the tokens were taken; null if no lease has them. */
        @Nullable
        Lease take(long cost, long now) {
            Lease older = previous;
            if (older.get() > 0 && older.take(cost, now)) {
                return older;
            }
            Lease latest = current;
            return latest.take(cost, now) ? latest : null;
        }

        /** Returns whether the caller is the one that asks for a lease; it must {@linkplain #stopAsking stop}. */
        boolean startAsking() {
            return !asking.get() && asking.compareAndSet(false, true);
        }

        void stopAsking() {
            asking.set(false);
        }

        boolean isMostlyUsed() {
            Lease latest = current;
            return latest.get() <= latest.tokens / 4;
        }

        boolean denies(long cost, long now) {
            return cost >= deniedCost && now - deniedUntil < 0;
        }

        /** Returns the most tokens that the next request asks for. */
        long wanted(long cost, long now) {
            Lease last = current;
            double age = Math.max(now - last.since, 1);
            long used = last.tokens - last.get() + Math.max(carried - previous.get(), 0);
            double rate = used / age;
            long max = Math.min(2 * last.tokens, spec.capacity() / 8);
            return Math.max(Math.min((long) (rate * lease.toNanos() / 2), max), cost);
        }

        /**
         * Records the result of a request that took tokens.
         *
         * @param fewer whether the bucket had fewer tokens than the request asked for
         */
        synchronized void granted(long tokens, long left, boolean fewer, long since, @Nullable Grant grant) {
            long until = since + (long) (lease.toNanos() * VALID_PART);
            Lease before = current.get() > 0 ? current : previous;
            if (before.grant != null && grant != null && hasEnded(before.grant, grant)) {
                before.set(0);
            }
            previous = before;
            carried = before.get();
            current = new Lease(tokens, left, since, until, grant);
            deniedUntil = since + lease.toNanos() / 4;
            deniedCost = fewer ? 1 : Long.MAX_VALUE;
        }

        /** Returns whether a lease has ended by the backend's clock: the clock of a frozen machine may have stood still. */
        private boolean hasEnded(Grant before, Grant after) {
            return after.micros() - before.micros() >= lease.toNanos() / 1_000;
        }

        synchronized void denied(long cost, long since) {
            deniedUntil = since + lease.toNanos() / 4;
            deniedCost = cost;
        }

        synchronized void drop() {
            previous.set(0);
            current.set(0);
        }

        long tokens(long now) {
            Lease older = previous;
            Lease latest = current;
            return (latest.isValid(now) ? latest.get() : 0) + (older != latest && older.isValid(now) ? older.get() : 0);
        }

        Answer denial(Charge charge, long now) {
            Duration retry = Duration.ofNanos(Math.max(deniedUntil - now, 1));
            Grant grant = current.grant;
            return grant == null
                    ? Answer.denied(charge, Outcome.DENIED, retry)
                    : Answer.denied(
                            charge,
                            Outcome.DENIED,
                            new BucketSnapshot(
                                    grant.bucket().capacity(),
                                    grant.bucket().rate(),
                                    0,
                                    retry,
                                    grant.bucket().resetAfter()),
                            retry);
        }
    }

    /** Returns whether a lease may decide one of the charges. */
    static boolean anyMayLease(List<Charge> charges) {
        for (int i = 0; i < charges.size(); i++) {
            if (mayLease(charges.get(i))) {
                return true;
            }
        }
        return false;
    }

    private static boolean mayLease(Charge charge) {
        return !charge.policy().lease().isZero()
                && charge.cost() <= charge.spec().capacity();
    }

    /**
     * Takes all of the charges or none: first from leases, which costs next to nothing, and then what no lease has from the
     * store.
     */
    Decision take(List<Charge> charges, Taker others) {
        List<Answer> leased = new ArrayList<>(charges.size());
        List<Charge> rest = new ArrayList<>(0);
        for (int i = 0; i < charges.size(); i++) {
            Answer answer = mayLease(charges.get(i)) ? take(charges.get(i)) : null;
            if (answer == null) {
                rest.add(charges.get(i));
            } else if (answer.allowed()) {
                leased.add(answer);
            } else {
                returnToLeases(leased);
                return Decision.of(List.of(answer));
            }
        }
        return rest.isEmpty() ? Decision.of(leased) : take(charges, leased, rest, others);
    }

    private Decision take(List<Charge> charges, List<Answer> leased, List<Charge> rest, Taker others) {
        List<LeaseRequest> requests = new ArrayList<>(rest.size());
        try {
            rest.forEach(charge -> addRequest(charge, requests));
            Decision decision = others.take(rest, requests);
            if (decision.allowed() && !leased.isEmpty()) {
                return RoutingBucketStore.join(charges, leased, decision.answers());
            }
            returnToLeases(decision.allowed() ? List.of() : leased);
            return decision;
        } finally {
            requests.forEach(this::release);
        }
    }

    private @Nullable Answer take(Charge charge) {
        LeasedBucket bucket = find(charge);
        if (bucket == null) {
            return null;
        }
        long now = time.nanoTime();
        Lease lease = bucket.take(charge.cost(), now);
        if (lease == null) {
            return bucket.denies(charge.cost(), now) ? bucket.denial(charge, now) : null;
        }
        if (bucket.isMostlyUsed() && !bucket.denies(1, now) && bucket.startAsking()) {
            renew(bucket, charge);
        }
        return lease.answer(charge, now);
    }

    private @Nullable LeasedBucket find(Charge charge) {
        LeasedBucket bucket = buckets.getIfPresent(BucketKey.of(charge));
        return bucket != null && bucket.isOf(charge) ? bucket : null;
    }

    private void addRequest(Charge charge, List<LeaseRequest> requests) {
        if (mayLease(charge)) {
            LeasedBucket bucket = findOrAdd(charge);
            if (bucket.startAsking()) {
                requests.add(new LeaseRequest(charge, bucket.wanted(charge.cost(), time.nanoTime())));
            }
        }
    }

    private LeasedBucket findOrAdd(Charge charge) {
        LeasedBucket found = find(charge);
        return found != null
                ? found
                : buckets.asMap()
                        .compute(
                                BucketKey.of(charge),
                                (key, other) -> other != null && other.isOf(charge)
                                        ? other
                                        : new LeasedBucket(charge, time.nanoTime()));
    }

    private void release(LeaseRequest request) {
        LeasedBucket bucket = find(request.charge());
        if (bucket != null) {
            bucket.stopAsking();
        }
    }

    /** Calls the store, and keeps the leases that it grants. */
    Decision takeFromStore(List<Charge> charges, List<LeaseRequest> requests) {
        long since = time.nanoTime();
        List<LeaseRequest> wanted = requests.stream()
                .filter(request -> request.maxTokens() > request.charge().cost())
                .toList();
        Decision decision = wanted.isEmpty() ? store.take(charges) : store.take(charges, wanted);
        for (LeaseRequest request : requests) {
            record(request, request.charge().cost(), answer(decision, request.charge()), since);
        }
        return decision;
    }

    /** Returns the answer to a charge; null if the charge wasn't taken because of another bucket. */
    private static @Nullable Answer answer(Decision decision, Charge charge) {
        for (Answer answer : decision.answers()) {
            if (answer.charge() == charge && answer.allowed() == decision.allowed()) {
                return answer;
            }
        }
        return null;
    }

    private void renew(LeasedBucket bucket, Charge charge) {
        try {
            background.execute(() -> {
                try {
                    renewNow(bucket, charge);
                } finally {
                    bucket.stopAsking();
                }
            });
        } catch (RejectedExecutionException busy) {
            bucket.stopAsking();
        }
    }

    private void renewNow(LeasedBucket bucket, Charge charge) {
        long since = time.nanoTime();
        long wanted = bucket.wanted(1, since);
        if (wanted > 1) {
            LeaseRequest request = new LeaseRequest(charge, wanted);
            calls.call(() -> {
                store.lease(request);
                record(request, 0, Answer.denied(charge, Outcome.DENIED, Duration.ZERO), since);
                return true;
            });
        }
    }

    /**
     * Records the result of a request.
     *
     * @param cost the tokens of the charge that were taken with the request if it was allowed
     * @param answer the answer to the charge; null if the store didn't try to take it
     */
    private void record(LeaseRequest request, long cost, @Nullable Answer answer, long since) {
        Charge charge = request.charge();
        LeasedBucket bucket = find(charge);
        Grant grant = request.grant();
        if (bucket == null) {
            return;
        }
        if (grant != null) {
            bucket.granted(grant.tokens(), grant.tokens() - cost, grant.tokens() < request.maxTokens(), since, grant);
        } else if (answer == null) {
            return;
        } else if (answer.allowed()) {
            bucket.granted(cost, 0, cost < request.maxTokens() && isNearlyEmpty(answer), since, null);
        } else {
            bucket.denied(Math.max(cost, 1), since);
        }
        buckets.put(BucketKey.of(charge), bucket);
    }

    /** Returns whether a bucket has so few tokens that it gives no lease. It may give none for other reasons. */
    private static boolean isNearlyEmpty(Answer answer) {
        return answer.remaining()
                <= answer.charge().spec().capacity() / 4 + 2 * answer.charge().cost();
    }

    private void returnToLeases(List<Answer> leased) {
        leased.forEach(this::giveBack);
    }

    /**
     * Gives tokens back to their lease. If it has ended, returns the answer with which the tokens can be given back to the
     * store. The same holds for an answer of the store.
     */
    @Nullable
    Answer giveBack(Answer answer) {
        return settle(answer, 0);
    }

    /**
     * Settles a call at its actual cost: the rest goes back to its lease. If the lease has ended, or the call costs more,
     * returns the answer with which the call can be settled in the store. The same holds for an answer of the store.
     */
    @Nullable
    Answer settle(Answer answer, long cost) {
        if (!(answer.receipt() instanceof Lease lease)) {
            return answer;
        }
        long estimate = answer.charge().cost();
        if (cost <= estimate && lease.isValid(time.nanoTime())) {
            lease.addAndGet(estimate - cost);
            return null;
        }
        return answer.withReceipt(lease.receipt(estimate));
    }

    /** Drops the lease of a bucket. */
    void forget(Charge charge) {
        LeasedBucket bucket = buckets.asMap().remove(BucketKey.of(charge));
        if (bucket != null) {
            bucket.drop();
        }
    }

    /** Returns the leased tokens of a policy that this process may still use. */
    long tokens(ThrottlePolicy policy) {
        long now = time.nanoTime();
        long tokens = 0;
        for (var entry : buckets.asMap().entrySet()) {
            tokens += entry.getKey().policy().equals(policy.name())
                    ? entry.getValue().tokens(now)
                    : 0;
        }
        return tokens;
    }
}
