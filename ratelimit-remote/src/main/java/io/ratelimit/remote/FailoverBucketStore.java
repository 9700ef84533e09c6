package io.ratelimit.remote;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Keys;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.SharedSlots;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.inflight.RegisterStore;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.Registers;
import io.ratelimit.remote.lease.Leases;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A bucket store that may fail, with an answer in time when it does: then the {@link FailureRule} of each policy decides.
 * A denial is remembered for a short time and repeated without a call of the store. Thread-safe.
 *
 * <p>A call that failed may have taken tokens nevertheless. It is not repeated, and its tokens are not given back, so the
 * store may have charged more than was granted, never less. Tokens of a fallback bucket are given back to the fallback
 * bucket. Tokens that would be given back to the store while it is unavailable stay taken.
 */
public final class FailoverBucketStore implements BucketStore {

    /** The rule of a policy for the time while the backend of its buckets is unavailable. */
    public enum FailureRule {

        /** The policy is enforced from the memory of this process. */
        LOCAL,

        /** Every call is allowed. */
        ALLOW,

        /** Every call is denied. */
        DENY
    }

    /** A policy with so many tokens that instances that start at the same time don't deny each other the probe. */
    private static final ThrottlePolicy PROBE_POLICY = ThrottlePolicy.of("self-test", BucketSpec.of("100000/1s"));

    /** A charge to a bucket that belongs to no policy, not even to one of the same name. */
    public static final Charge PROBE_CHARGE = Charge.of(PROBE_POLICY, Keys.reserved(""), 1);

    private static final int LEASE_THREADS = 4;
    private static final int MAX_WAITING_RENEWALS = 1_000;

    private final BucketStore store;
    private final Deadline deadline;
    private final ResilientCalls calls;
    private final FallbackBuckets fallback;
    private final RememberedDenials denials;
    private final @Nullable Leases leases;
    private final @Nullable Registers registers;
    private final SettlementThreads settlements = new SettlementThreads();

    /**
     * Creates a store that renews leases on a few threads of its own, which end when they are idle. While all are busy, at
     * most 1,000 renewals wait; others are left out.
     *
     * @param name the name of the store, for the log and the health
     * @param store throws {@link BackendException} when it fails
     * @param memory decides while the store is unavailable; no other store may use its buckets
     * @param localShare the part of capacity and rate that is granted from memory, above 0 and at most 1
     * @param rules returns the rule of a policy
     * @throws IllegalArgumentException if the local share is outside its range
     */
    public FailoverBucketStore(
            String name,
            BucketStore store,
            BucketStore memory,
            double localShare,
            Function<ThrottlePolicy, FailureRule> rules,
            Deadline deadline) {
        this(
                name,
                store,
                memory,
                localShare,
                rules,
                deadline,
                SettlementThreads.pool("ratelimit-lease", LEASE_THREADS, MAX_WAITING_RENEWALS));
    }

    /**
     * Like the other constructor, for renewals that run elsewhere.
     *
     * @param background runs the calls that renew leases, if the store is a {@link LeasingBucketStore}; it may reject them
     * @throws IllegalArgumentException if the local share is outside its range
     */
    public FailoverBucketStore(
            String name,
            BucketStore store,
            BucketStore memory,
            double localShare,
            Function<ThrottlePolicy, FailureRule> rules,
            Deadline deadline,
            Executor background) {
        this.store = store;
        this.deadline = deadline;
        this.calls = new ResilientCalls(
                name, deadline, store instanceof Deadline.Bounded, () -> store.take(List.of(PROBE_CHARGE)));
        this.fallback = new FallbackBuckets(memory, new LocalShare(localShare), rules);
        this.denials = new RememberedDenials(deadline.time());
        this.leases = store instanceof LeasingBucketStore leasing
                ? new Leases(deadline.time(), leasing, calls::run, deadline::awaitOther, background)
                : null;
        this.registers = store instanceof RegisterStore shared
                ? new Registers(
                        deadline.time(),
                        shared,
                        new RegisterAccess(calls, shared, deadline, fallback),
                        Registers.TIME_TO_LIVE)
                : null;
    }

    /**
     * Returns whether a local share of a limit is none, since it is less than the cost of a call, or less than one token in
     * 365 days. Then {@link FailureRule#LOCAL} denies every call.
     */
    public static boolean isNone(double localShare, BucketSpec spec, long cost) {
        BucketSpec share = new LocalShare(localShare).scaled(spec);
        return share == null || share.capacity() < cost;
    }

    /** Returns the store as a backend with a state. */
    public Backend backend() {
        return calls;
    }

    /** Records that the store failed when the application started. */
    public void failedAtStart(BackendException failure) {
        calls.failedAtStart(failure);
    }

    @Override
    public Decision take(List<Charge> charges) {
        return takeWithSlots(charges, List.of());
    }

    /** Requests for slots are decided before the call for the tokens or with it, but not if a denial is remembered. */
    @Override
    public Decision takeWithSlots(List<Charge> charges, List<SharedSlots.Request> slots) {
        if (leases == null || !Leases.anyMayLease(charges)) {
            return takeUnlessDenied(charges, List.of(), slots);
        }
        try {
            return leases.take(charges, (rest, requests) -> takeUnlessDenied(rest, requests, slots));
        } finally {
            deadline.closeAwaiting();
        }
    }

    private Decision takeUnlessDenied(
            List<Charge> charges, List<LeaseRequest> requests, List<SharedSlots.Request> slots) {
        List<Answer> denied = denials.find(charges, true);
        if (!denied.isEmpty()) {
            return Decision.of(denied);
        }
        if (registers == null || slots.isEmpty()) {
            return take(charges, BucketStore::take, requests, slots);
        }
        return registers.start(slots, requests.isEmpty())
                ? take(charges, BucketStore::take, requests, slots)
                : SharedSlots.denial(charges);
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return take(charges, BucketStore::reserve, List.of(), List.of());
    }

    /** Returns the remembered denials of the charges, for a call that doesn't reach the store in any case. */
    List<Answer> remembered(List<Charge> charges) {
        return denials.find(charges, false);
    }

    /** @param verb takes from a store at once or ahead */
    private Decision take(
            List<Charge> charges,
            BiFunction<BucketStore, List<Charge>, Decision> verb,
            List<LeaseRequest> requests,
            List<SharedSlots.Request> slots) {
        return calls.call(
                () -> {
                    long calledAt = deadline.time().nanoTime();
                    Decision decision = leases == null || requests.isEmpty()
                            ? takeFromStore(charges, verb, slots)
                            : leases.takeFromStore(charges, requests);
                    denials.note(decision, calledAt);
                    return decision;
                },
                congested -> fallback.take(charges, verb, congested));
    }

    private Decision takeFromStore(
            List<Charge> charges,
            BiFunction<BucketStore, List<Charge>, Decision> verb,
            List<SharedSlots.Request> slots) {
        if (registers != null && !slots.isEmpty()) {
            List<CarriedClaim> claims = registers.carry(slots);
            if (!claims.isEmpty()) {
                return registers.take(charges, claims);
            }
        }
        return verb.apply(store, charges);
    }

    @Override
    public void giveBack(List<Answer> taken) {
        List<Answer> ofFallback = new ArrayList<>();
        List<Answer> ofStore = new ArrayList<>(taken.size());
        for (Answer answer : taken) {
            if (!answer.charge().spec().hasRate()) {
                continue; // it took a slot, not a token
            }
            if (answer.fallback()) {
                ofFallback.add(answer);
            } else {
                Answer left = leases == null ? answer : leases.giveBack(answer);
                ofStore.addAll(left == null ? List.of() : List.of(left));
            }
        }
        if (!ofFallback.isEmpty()) {
            fallback.giveBack(ofFallback);
        }
        if (!ofStore.isEmpty()) {
            calls.run(() -> store.giveBack(ofStore));
            ofStore.forEach(answer -> denials.forget(answer.charge()));
        }
    }

    /**
     * Settles a call where its tokens were taken: in the store, in a lease or in its fallback bucket. If it costs more
     * than was taken, the leases of this process pay first. If they have too few tokens, they end, and the store takes the
     * rest.
     *
     * @throws BackendException if the tokens were taken from the store and it fails; the estimate then stands, or perhaps
     *     the actual cost
     */
    @Override
    public boolean settle(Answer taken, long cost) {
        if (!taken.charge().spec().hasRate()) {
            return true;
        }
        if (taken.fallback()) {
            return fallback.settle(taken, cost);
        }
        long estimate = taken.charge().cost();
        long paid = leases == null ? 0 : leases.pay(taken.charge(), cost - estimate);
        long due = cost - paid;
        Answer left = leases == null ? taken : leases.settle(taken, due);
        if (left == null || due == estimate) {
            return true;
        }
        Boolean settled = deadline.settling(() -> calls.call(() -> store.settle(left, due)));
        denials.forget(taken.charge());
        if (leases != null && due > estimate) {
            dropIfInDebt(taken.charge(), leases);
        }
        if (settled == null) {
            throw new BackendException(calls.name() + " is unavailable, and the estimated cost may stand");
        }
        return settled;
    }

    /** Drops leases that this process got while a call was being settled, if the bucket is in debt or can't be read. */
    private void dropIfInDebt(Charge charge, Leases leases) {
        if (leases.mayHaveTokens(charge)) {
            BucketSnapshot after = deadline.settling(() -> calls.call(() -> store.snapshot(charge)));
            if (after == null || after.resetAfter().compareTo(charge.spec().timeToFull()) > 0) {
                leases.drop(charge);
            }
        }
    }

    /** Returns threads of this store, since the store may be slow. */
    @Override
    public Executor settlements(ThrottlePolicy policy) {
        return settlements;
    }

    /**
     * Waits for the settlements that other threads make, but for at most two seconds. Call this before the store's
     * connections are closed.
     */
    public void awaitSettlements() {
        settlements.await();
    }

    /**
     * Gives back the slots that are kept for later calls in flight, but waits for at most a second. Call this before the
     * store's connections are closed.
     */
    public void giveBackSlots() {
        if (registers != null) {
            registers.giveBackKept(Duration.ofSeconds(1));
        }
    }

    /**
     * Returns the state of the bucket, or of its fallback bucket while the store is unavailable.
     *
     * @throws BackendException if the store is unavailable and the policy has no fallback bucket
     */
    @Override
    public BucketSnapshot snapshot(Charge charge) {
        BucketSnapshot snapshot = calls.call(() -> store.snapshot(charge));
        snapshot = snapshot != null ? snapshot : fallback.snapshot(charge);
        if (snapshot == null) {
            throw new BackendException(calls.name() + " is unavailable, and the policy has no fallback bucket");
        }
        return snapshot;
    }

    @Override
    public void reset(Charge charge) {
        fallback.reset(charge);
        if (leases != null) {
            leases.forget(charge);
        }
        boolean done = calls.run(() -> store.reset(charge));
        denials.forget(charge);
        if (!done) {
            throw new BackendException(calls.name() + " is unavailable, and the bucket may still exist");
        }
    }

    @Override
    public boolean keepsShares(ThrottlePolicy policy) {
        return store.keepsShares(policy);
    }

    @Override
    public @Nullable SharedSlots slots(ThrottlePolicy policy) {
        return registers == null ? null : registers.of(policy);
    }

    @Override
    public Backend backend(ThrottlePolicy policy) {
        return calls;
    }

    @Override
    public long leased(ThrottlePolicy policy) {
        return leases == null ? 0 : leases.tokens(policy);
    }

    /** Returns the number of buckets in this process: fallback buckets, which are kept for the next failure, and the store's. */
    @Override
    public long size(ThrottlePolicy policy) {
        return fallback.size(policy) + store.size(policy);
    }
}
