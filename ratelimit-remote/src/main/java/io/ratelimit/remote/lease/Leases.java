package io.ratelimit.remote.lease;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.Expiry;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.LeasingBucketStore.Grant;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.lease.LeasedBucket.Lease;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The leases of this process. A lease holds tokens that were taken ahead from a remote bucket; a call whose tokens are
 * in a lease needs no call of the backend. Thread-safe.
 *
 * <p>A request for a lease is for as many tokens as calls use in half the time of a lease, but at most for twice the
 * tokens of the last request and for an eighth of the capacity. Only a bucket that is called twice within a quarter of a
 * lease requests any: calls at longer intervals use no more than one call's tokens in half a lease. Without a request for
 * two leases it is forgotten, or up to half a lease sooner. A call that finds no tokens while a request is under way waits
 * for its result, since all threads of a busy key find none at the same time.
 *
 * <p>If a request is granted fewer tokens than it is for, calls that find no lease are denied from memory for a quarter of
 * a lease from the request on. If it is granted none, the same holds for calls that cost more than the remote bucket has.
 */
public final class Leases {

    /** The approximate limit in bytes. Beyond it, leases are evicted without use of their tokens. */
    private static final long MAX_WEIGHT = 40_000_000;

    private static final int WEIGHT_OF_BUCKET = 800;

    /** The smallest lease to renew in the background: to pass work to another thread costs as much as a call of the store. */
    private static final int MIN_RENEWAL = 8;

    private final TimeSource time;
    private final Executor background;
    private final LeasingBucketStore store;
    private final Consumer<Runnable> renewals;
    private final Consumer<Future<?>> waits;
    private final LatestCalls latestCalls = new LatestCalls();
    private final Cache<BucketName, LeasedBucket> buckets;

    /**
     * @param renewals makes a call of the store in the background, unless the store is unavailable
     * @param waits waits for a request of another thread, but not too long for a call of this thread
     * @param background runs these calls; it may reject them or fail
     */
    public Leases(
            TimeSource time,
            LeasingBucketStore store,
            Consumer<Runnable> renewals,
            Consumer<Future<?>> waits,
            Executor background) {
        this.time = time;
        this.store = store;
        this.renewals = renewals;
        this.waits = waits;
        this.background = background;
        this.buckets = Caffeine.newBuilder()
                .ticker(time::nanoTime)
                .executor(Runnable::run) // waking a thread after each write would cost more than the write
                .expireAfter(Expiry.<BucketName, LeasedBucket>writing(
                        (key, bucket) -> bucket.lease().multipliedBy(2)))
                .maximumWeight(MAX_WEIGHT)
                .weigher((BucketName key, LeasedBucket bucket) ->
                        WEIGHT_OF_BUCKET + 2 * key.key().length())
                .build();
    }

    /** Returns whether a lease may decide one of the charges. */
    public static boolean anyMayLease(List<Charge> charges) {
        for (int i = 0; i < charges.size(); i++) {
            if (mayLease(charges.get(i))) {
                return true;
            }
        }
        return false;
    }

    private static boolean mayLease(Charge charge) {
        return !charge.policy().lease().isZero()
                && charge.spec().refill() != Refill.CALENDAR
                && charge.cost() <= charge.spec().capacity();
    }

    /**
     * Takes all of the charges or none: first from leases, and then from the store what no lease has. If a charge is
     * denied, tokens that were taken from leases go back to them.
     *
     * @param taker takes the charges for which no lease has the tokens, with requests for leases
     */
    public Decision take(List<Charge> charges, BiFunction<List<Charge>, List<LeaseRequest>, Decision> taker) {
        List<Answer> leased = new ArrayList<>(charges.size());
        List<Charge> rest = new ArrayList<>(0);
        for (int i = 0; i < charges.size(); i++) {
            Answer answer = mayLease(charges.get(i)) ? take(charges.get(i)) : null;
            if (answer == null) {
                rest.add(charges.get(i));
            } else if (answer.allowed()) {
                leased.add(answer);
            } else {
                revert(leased);
                return Decision.of(List.of(answer));
            }
        }
        return rest.isEmpty() ? Decision.of(leased) : take(charges, leased, rest, taker);
    }

    private Decision take(
            List<Charge> charges,
            List<Answer> leased,
            List<Charge> rest,
            BiFunction<List<Charge>, List<LeaseRequest>, Decision> taker) {
        List<LeaseRequest> requests = new ArrayList<>(rest.size());
        List<LeasedBucket> requesting = new ArrayList<>(rest.size());
        try {
            rest.forEach(charge -> addRequest(charge, requests, requesting));
            Decision decision = taker.apply(rest, requests);
            if (!decision.allowed()) {
                revert(leased);
            }
            return decision.allowed() && !leased.isEmpty() ? join(charges, leased, decision.answers()) : decision;
        } finally {
            requesting.forEach(LeasedBucket::endRequest);
        }
    }

    /** Gives back the tokens of a denied call: those of an ended lease to the store, without waiting for it. */
    private void revert(List<Answer> leased) {
        List<Answer> ended =
                leased.stream().map(this::giveBack).filter(Objects::nonNull).toList();
        if (!ended.isEmpty()) {
            try {
                background.execute(() -> renewals.accept(() -> store.giveBack(ended)));
            } catch (RuntimeException | Error failed) { // then these tokens stay taken; the denial stands
            }
        }
    }

    /** Joins two lists of answers, each in the order of the charges. A charge may occur twice. */
    public static Decision join(List<Charge> charges, List<Answer> some, List<Answer> others) {
        List<Answer> answers = new ArrayList<>(charges.size());
        int next = 0;
        int nextOther = 0;
        for (Charge charge : charges) {
            if (next < some.size() && some.get(next).charge() == charge) {
                answers.add(some.get(next++));
            } else if (nextOther < others.size() && others.get(nextOther).charge() == charge) {
                answers.add(others.get(nextOther++));
            }
        }
        return Decision.of(answers);
    }

    /** Returns the answer of a lease or of a recent denial; null if the store has to decide. */
    private @Nullable Answer take(Charge charge) {
        LeasedBucket bucket = find(charge);
        if (bucket == null) {
            return null;
        }
        Answer answer = take(charge, bucket);
        Future<?> request = answer == null ? bucket.request() : null;
        if (request == null) {
            return answer;
        }
        waits.accept(request);
        return take(charge, bucket);
    }

    private @Nullable Answer take(Charge charge, LeasedBucket bucket) {
        long now = time.nanoTime();
        Lease lease = bucket.take(charge.cost(), now);
        if (lease == null) {
            Answer denial = bucket.denial(charge, now);
            lease = denial == null ? null : bucket.take(charge.cost(), now); // the denial may follow a new lease
            if (lease == null) {
                return denial;
            }
        }
        if (bucket.isMostlyUsed() && !bucket.isShort(now) && bucket.request() == null) {
            renew(bucket, charge, now);
        }
        return lease.answer(charge, now);
    }

    private @Nullable LeasedBucket find(Charge charge) {
        LeasedBucket bucket = buckets.getIfPresent(BucketName.of(charge));
        return bucket != null && bucket.isOf(charge) ? bucket : null;
    }

    /** Adds a request for a lease of the charge's bucket, unless it is rarely called or another thread has one under way. */
    private void addRequest(Charge charge, List<LeaseRequest> requests, List<LeasedBucket> requesting) {
        LeasedBucket bucket = mayLease(charge) ? findOrAdd(charge) : null;
        if (bucket != null && bucket.startRequest()) {
            requesting.add(bucket);
            requests.add(new LeaseRequest(charge, bucket.maxTokens(charge.cost(), time.nanoTime())));
        }
    }

    /** Returns the bucket of a charge; null if its last call is too long ago for a lease of more than one cost. */
    private @Nullable LeasedBucket findOrAdd(Charge charge) {
        BucketName name = BucketName.of(charge);
        LeasedBucket found = buckets.getIfPresent(name);
        if (found != null && found.isOf(charge)) {
            return found;
        }
        long now = time.nanoTime();
        long nanosSince =
                latestCalls.nanosSince(name, now, charge.policy().lease().dividedBy(4));
        if (nanosSince < 0) {
            return null;
        }
        LeasedBucket created = new LeasedBucket(charge, now - nanosSince);
        return buckets.asMap().merge(name, created, (other, own) -> other.isOf(charge) ? other : own);
    }

    /** Calls the store, and keeps the leases that it grants. */
    public Decision takeFromStore(List<Charge> charges, List<LeaseRequest> requests) {
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

    /** Renews the lease in the background, unless it is so small that the call which finds no tokens may as well do so. */
    private void renew(LeasedBucket bucket, Charge charge, long now) {
        long maxTokens = bucket.tokensAhead(now);
        if (maxTokens < MIN_RENEWAL || !bucket.isBusy(now) || !bucket.startRequest()) {
            return;
        }
        CompletableFuture<Void> started = Objects.requireNonNull(bucket.request());
        try {
            background.execute(() -> {
                try {
                    renewNow(new LeaseRequest(charge, maxTokens));
                } finally {
                    bucket.endRequest();
                }
            });
        } catch (RuntimeException | Error failed) { // as without a thread; this call has its tokens
            if (!started.isDone()) { // else it ran in this thread, and another may have started a request since
                bucket.endRequest();
            }
        }
    }

    private void renewNow(LeaseRequest request) {
        long since = time.nanoTime();
        renewals.accept(() -> {
            BucketSnapshot after = store.lease(request);
            record(request, 0, Answer.denied(request.charge(), Outcome.DENIED, after, Duration.ZERO), since);
        });
    }

    /**
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
            bucket.granted(grant, grant.tokens() - cost, grant.tokens() < request.maxTokens(), since);
        } else if (answer == null) {
            return;
        } else {
            if (answer.allowed()) {
                bucket.taken(cost, since);
            }
            if (!answer.allowed() && cost > 0) {
                bucket.lacks(cost, answer.retryNanos(), after(answer), since);
            } else if (cost < request.maxTokens() || bucket.isTooSmall()) {
                bucket.lacks(answer.remaining() + 1, answer.nextTokenNanos(), after(answer), since);
            }
        }
        if (bucket.isToBeKept(since)) {
            buckets.put(BucketName.of(charge), bucket);
        }
    }

    private static BucketSnapshot after(Answer answer) {
        BucketSpec spec = answer.charge().spec();
        return new BucketSnapshot(
                spec.capacity(),
                spec.rate(),
                answer.remaining(),
                Duration.ofNanos(answer.nextTokenNanos()),
                Duration.ofNanos(answer.resetNanos()));
    }

    /**
     * Gives tokens back to their lease.
     *
     * @return null if that was done; otherwise the answer with which the store can give the tokens back, because the
     *     lease has ended or the tokens weren't taken from one
     */
    public @Nullable Answer giveBack(Answer answer) {
        return settle(answer, 0);
    }

    /**
     * Settles a call at its actual cost: the rest goes back to its lease.
     *
     * @return null if that was done; otherwise the answer with which the store can settle the call, because the lease
     *     has ended, the call costs more, or its tokens weren't taken from a lease
     */
    public @Nullable Answer settle(Answer answer, long cost) {
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

    /**
     * Pays for tokens that a call has cost beyond its estimate, from the leases of its bucket under any spec. If they have
     * too few, they end.
     *
     * @param tokens the tokens; none if it is below 1
     * @return the number of tokens paid
     */
    public long pay(Charge charge, long tokens) {
        LeasedBucket bucket = tokens < 1 ? null : buckets.getIfPresent(BucketName.of(charge));
        return bucket == null ? 0 : bucket.pay(tokens, time.nanoTime());
    }

    /** Returns whether there are leased tokens of a bucket, or may be after a request that is under way. */
    public boolean mayHaveTokens(Charge charge) {
        LeasedBucket bucket = buckets.getIfPresent(BucketName.of(charge));
        return bucket != null && bucket.mayHaveTokens(time.nanoTime());
    }

    /** Drops the leases of a bucket in debt. A new lease needs a request that is sent from now on. */
    public void drop(Charge charge) {
        LeasedBucket bucket = buckets.getIfPresent(BucketName.of(charge));
        if (bucket != null) {
            bucket.drop();
        }
    }

    /** Forgets a bucket and drops its leases. Their tokens come back to the remote bucket with time. */
    public void forget(Charge charge) {
        LeasedBucket bucket = buckets.asMap().remove(BucketName.of(charge));
        if (bucket != null) {
            bucket.drop();
        }
    }

    /** Returns the leased tokens of a policy that this process may still use. */
    public long tokens(ThrottlePolicy policy) {
        long now = time.nanoTime();
        return buckets.asMap().entrySet().stream()
                .filter(entry -> entry.getKey().policy().equals(policy.name()))
                .mapToLong(entry -> entry.getValue().tokens(now))
                .sum();
    }
}
