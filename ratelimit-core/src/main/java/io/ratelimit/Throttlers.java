package io.ratelimit;

import static io.ratelimit.Check.check;

import io.ratelimit.Decision.Answer;
import io.ratelimit.InFlightCalls.Taker;
import io.ratelimit.ThrottleListener.Event;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The throttlers of several policies over one store. Thread-safe.
 *
 * <ul>
 *   <li>{@link #get} gives the throttler of one policy.
 *   <li>{@link #decide} and {@link #acquire} take from the buckets of several policies, all or none. {@code decide}
 *       answers at once; {@code acquire} waits for tokens that come in time.
 *   <li>{@link #giveBack} returns unused tokens, and {@link #settle} replaces an estimated cost by the actual cost.
 * </ul>
 */
public final class Throttlers {

    /** The largest actual cost of a call. */
    public static final long MAX_SETTLED_COST = 1_000_000_000_000L;

    private volatile Map<String, PolicyThrottler> throttlers = Map.of();
    private final Map<String, PolicyThrottler> foreign = new ConcurrentHashMap<>();
    private final BucketStore store;
    private final GuardedListeners listener;
    private final WaitQueues queues;
    private final InFlightCalls inFlight;
    private final CallDecisions decisions;
    private final Taker atOnce;
    private final Taker shadowWaiting;

    /**
     * Creates the throttlers of these policies.
     *
     * @param time the clock that calls wait by; it must be the store's
     * @throws IllegalArgumentException if two policies have the same name
     */
    public Throttlers(
            Collection<ThrottlePolicy> policies, BucketStore store, TimeSource time, ThrottleListener listener) {
        this.store = store;
        this.listener = GuardedListeners.of(listener, this);
        this.queues = new WaitQueues(this, store, time);
        this.inFlight = new InFlightCalls(this, time);
        this.decisions = new CallDecisions(inFlight, this.listener);
        this.atOnce = store::takeWithSlots;
        this.shadowWaiting = queues::takeInShadow;
        policies.forEach(this::add);
    }

    /** Returns throttlers with their buckets in memory, on the machine's clock. */
    public static Throttlers local(Collection<ThrottlePolicy> policies) {
        return local(policies, TimeSource.system());
    }

    /** Returns throttlers with their buckets in memory, on the given clock. */
    public static Throttlers local(Collection<ThrottlePolicy> policies, TimeSource time) {
        return new Throttlers(policies, BucketStore.local(time), time, ThrottleListener.NONE);
    }

    /**
     * Adds a policy.
     *
     * @throws IllegalArgumentException if there is a policy of that name, or it limits the calls in flight and its
     *     backend doesn't share their slots, or it has guaranteed shares and its store doesn't support them
     */
    public synchronized void add(ThrottlePolicy policy) {
        Map<String, PolicyThrottler> extended = new LinkedHashMap<>(throttlers);
        check(!extended.containsKey(policy.name()), "the name of a policy", "unique", policy.name());
        extended.put(policy.name(), create(policy));
        throttlers = extended;
    }

    private PolicyThrottler create(ThrottlePolicy policy) {
        verify(policy);
        PolicyThrottler throttler =
                policy.isGlobal() ? new GlobalThrottler(policy, this) : new PartitionedThrottler(policy, this);
        throttler.setListener(listener.added(throttler));
        return throttler;
    }

    /**
     * Returns the throttler that a policy leads to, or of its name for one that wasn't read from a throttler. A policy
     * that was never added gets one too, which isn't one of {@link #all}.
     */
    PolicyThrottler of(ThrottlePolicy policy) {
        PolicyThrottler own = policy.throttler();
        if (own != null && own.isOf(this)) {
            return own;
        }
        PolicyThrottler added = throttlers.get(policy.name());
        return added != null ? added : foreign.computeIfAbsent(policy.name(), name -> create(policy));
    }

    /**
     * Returns the throttler of a policy.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     */
    public PolicyThrottler get(String policy) {
        PolicyThrottler throttler = throttlers.get(policy);
        if (throttler == null) {
            throw new UnknownPolicyException(policy, throttlers.keySet());
        }
        return throttler;
    }

    /** Returns the throttler of a policy, also of one that was never added but has been used. */
    private PolicyThrottler find(String policy) {
        PolicyThrottler used = throttlers.containsKey(policy) ? null : foreign.get(policy);
        return used == null ? get(policy) : used;
    }

    /**
     * Returns the throttler of a policy without a key.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     * @throws IllegalArgumentException if the policy has a key: call {@link #get} and {@link PolicyThrottler#forKey}
     */
    public GlobalThrottler global(String policy) {
        PolicyThrottler throttler = get(policy);
        if (throttler instanceof GlobalThrottler global) {
            return global;
        }
        throw new IllegalArgumentException("the policy '" + policy + "' has a bucket for each key: call get(\"" + policy
                + "\").forKey(" + String.join(", ", throttler.policy().key()) + ")");
    }

    /** Returns all throttlers, in the order of their policies. */
    public Collection<PolicyThrottler> all() {
        return List.copyOf(throttlers.values());
    }

    /**
     * Takes all of the charges and allows the call, or takes none and denies it.
     *
     * <p>Charges to policies that are off are skipped. Policies in shadow mode decide one by one after the others have
     * allowed the call. The listener gets their decisions; the result only contains
     * {@linkplain Decision#shadows what they took}.
     *
     * <p>If a policy limits calls in flight, {@linkplain Decision#release release} an allowed decision after the call.
     *
     * @throws BackendException if a remote store fails and has no fallback
     */
    public Decision decide(List<Charge> charges) {
        return decisions.decide(charges, atOnce, atOnce);
    }

    /**
     * Like {@link #decide}, but if tokens are missing and come within the charges' {@link Charge#maxWait}, takes them
     * ahead and waits for them in the policies' queues. The longest of the waits counts. Policies in shadow mode hold
     * no call: they allow a call that would have waited for tokens in their queue.
     *
     * @throws BackendException if a remote store fails and has no fallback
     * @throws InterruptedException if the thread is interrupted while it waits; the tokens are given back
     */
    public Decision acquire(List<Charge> charges) throws InterruptedException {
        if (!WaitQueues.anyMayWait(charges)) {
            return decide(charges);
        }
        try (WaitQueues.Call call = queues.call()) {
            Decision decision = decisions.decide(charges, call, shadowWaiting);
            call.await(decision);
            return decision;
        } catch (InFlightCalls.InterruptedWait interrupted) {
            throw (InterruptedException) interrupted.getCause();
        }
    }

    /**
     * Puts back the tokens that an allowed decision {@linkplain Decision#taken took}, if the call is not made after
     * all. While other calls wait, only tokens that no waiting call depends on come back.
     */
    public void giveBack(List<Answer> taken) {
        if (!taken.isEmpty()) {
            store.giveBack(taken);
        }
    }

    /**
     * Like {@link #giveBack}, for threads that must not wait: tokens go back to a bucket in memory at once, and to one in
     * a remote store on another thread. If too much work waits for such a thread, or the backend fails, the tokens stay
     * taken, and the listener gets the event of a failed backend.
     */
    public void giveBackLater(List<Answer> taken) {
        Map<Executor, List<Answer>> byExecutor = new LinkedHashMap<>();
        taken.forEach(answer -> byExecutor
                .computeIfAbsent(store.settlements(answer.policy()), executor -> new ArrayList<>())
                .add(answer));
        byExecutor.forEach((executor, answers) -> reportingFailure(
                answers, () -> executor.execute(() -> reportingFailure(answers, () -> store.giveBack(answers)))));
    }

    /** Runs work for taken tokens. If the backend fails, or an executor is busy, the listener gets the event. */
    private void reportingFailure(List<Answer> taken, Runnable work) {
        try {
            work.run();
        } catch (BackendException | RejectedExecutionException failed) {
            taken.forEach(answer -> listener.eventOccurred(answer.policy(), Event.BACKEND_FAILURE));
        }
    }

    /**
     * Replaces the cost of an allowed call by its actual cost, which is known when the work is done. If it is lower, the
     * rest comes back as by {@link #giveBack}. If it is higher, the difference is taken even if the bucket has too few
     * tokens: the bucket is then in debt, and denies all calls until time has paid the debt, but for at most 365 days.
     * Calls that already wait keep their turn. Settle an answer once, and don't give it back as well.
     *
     * <p>The bucket that the tokens were taken from is settled, even if the policy's rate has changed since. If its
     * backend fails, the bucket counts the estimate, or perhaps the actual cost, and the listener gets the event.
     *
     * @param taken one of the answers that an allowed decision {@linkplain Decision#taken took}
     * @param cost the actual cost, from 0 to 10^12
     * @return false if the backend failed, or can't take as much as the actual cost
     * @throws IllegalArgumentException if the cost is outside its range, or the answer is a denial
     */
    public boolean settle(Answer taken, long cost) {
        checkSettlement(taken, cost);
        try {
            boolean settled = store.settle(taken, cost);
            listener.eventOccurred(taken.policy(), settled ? Event.SETTLED : Event.SETTLE_FAILURE);
            return settled;
        } catch (BackendException failed) {
            listener.eventOccurred(taken.policy(), Event.BACKEND_FAILURE);
            return false;
        }
    }

    /**
     * Like {@link #settle}, for threads that must not wait, such as the one that completes a future: a bucket in memory
     * is settled at once, and one in a remote store on another thread. If too many settlements wait for such a thread,
     * the estimate stands, and the listener gets the event of a failed backend.
     *
     * @throws IllegalArgumentException if the cost is outside its range, or the answer is a denial
     */
    public void settleLater(Answer taken, long cost) {
        checkSettlement(taken, cost);
        reportingFailure(List.of(taken), () -> store.settlements(taken.policy()).execute(() -> settle(taken, cost)));
    }

    private static void checkSettlement(Answer taken, long cost) {
        check(cost >= 0 && cost <= MAX_SETTLED_COST, "cost", "between 0 and " + MAX_SETTLED_COST, cost);
        check(taken.allowed(), "the outcome of a settled answer", "ALLOWED", taken.outcome());
    }

    /**
     * Returns the bucket of a key; without parts, that of a global policy. A key without a bucket has a full one.
     *
     * @throws UnknownPolicyException if no policy of that name was added or used
     * @throws IllegalArgumentException if the parts don't fit the policy's key
     * @throws BackendException if a remote bucket can't be read
     */
    public BucketSnapshot snapshot(String policy, String... key) {
        return find(policy).forKey(key).snapshot();
    }

    /**
     * Returns the bucket of a charge as it is now. Tokens that the charge has to leave to guaranteed shares don't count as
     * available. If the charge has a guaranteed share, it is the share, or what all share if that has more tokens.
     *
     * @throws BackendException if a remote bucket can't be read
     */
    public BucketSnapshot snapshot(Charge charge) {
        if (!charge.spec().hasRate()) {
            return inFlight.snapshot(charge);
        }
        BucketSnapshot own = store.snapshot(charge);
        Charge.Share share = charge.share();
        if (share == null || share.guaranteed() == null) {
            return own;
        }
        BucketSnapshot all = store.snapshot(charge.withShare(share.withoutLane()));
        return all.available() > own.available() ? all : own;
    }

    /**
     * Forgets the bucket of a key, so that the next call finds it full.
     *
     * @throws UnknownPolicyException if no policy of that name was added or used
     * @throws IllegalArgumentException if the parts don't fit the policy's key
     * @throws BackendException if a remote bucket perhaps wasn't forgotten
     */
    public void reset(String policy, String... key) {
        find(policy).forKey(key).reset();
    }

    /**
     * Forgets the bucket of a charge, so that the next call finds it full. An overflow bucket, which keys share, stays.
     *
     * @throws BackendException if a remote bucket perhaps wasn't forgotten
     */
    public void reset(Charge charge) {
        if (charge.spec().hasRate()) {
            store.reset(charge);
        }
    }

    /** Returns the listener for decisions, so that code that detects other events can report them. */
    public ThrottleListener listener() {
        return listener;
    }

    void verify(ThrottlePolicy changed) {
        inFlight.checkPlace(changed, store);
        if (changed.shares() != null && !store.keepsShares(changed)) {
            throw new IllegalArgumentException(
                    "'" + changed.name() + "' has guaranteed shares, which the store of its bucket doesn't support");
        }
    }

    @Nullable
    SharedSlots sharedSlots(ThrottlePolicy policy) {
        return store.slots(policy);
    }

    @Nullable
    Backend backend(ThrottlePolicy policy) {
        return store.backend(policy);
    }

    /**
     * Returns how many buckets of a policy this process holds, without remote ones.
     *
     * @throws UnknownPolicyException if no policy of that name was added or used
     */
    public long size(String policy) {
        return store.size(find(policy).policy());
    }

    /**
     * Returns how many tokens of remote buckets this process has taken ahead for a policy, and not used yet.
     *
     * @throws UnknownPolicyException if no policy of that name was added or used
     */
    public long leased(String policy) {
        return store.leased(find(policy).policy());
    }

    /**
     * Returns how many calls of a policy wait; for a policy in shadow mode, how many would.
     *
     * @throws UnknownPolicyException if no policy of that name was added or used
     */
    public int waiting(String policy) {
        return queues.size(find(policy).policy());
    }

    /**
     * Returns how many calls of a policy run in this process and are counted, by {@link BucketSpec#inFlight()}.
     *
     * @throws UnknownPolicyException if no policy of that name was added or used
     */
    public int inFlight(String policy) {
        return find(policy).held();
    }

    /** Returns how many calls of a charge's key run in this process and are counted. */
    public int inFlight(Charge charge) {
        return inFlight.held(charge);
    }

    /** Thrown if no throttle policy has the requested name. */
    public static final class UnknownPolicyException extends IllegalArgumentException {

        private static final long serialVersionUID = 1;

        private final String policy;
        private final String[] policies;

        /** Creates the exception from the requested name and the names of all policies. */
        public UnknownPolicyException(String policy, Set<String> policies) {
            super("no throttle policy is named '" + policy + "'; the policies are: "
                    + String.join(", ", new TreeSet<>(policies)));
            this.policy = policy;
            this.policies = policies.toArray(String[]::new);
        }

        /** Returns the requested name. */
        public String policy() {
            return policy;
        }

        /** Returns the names of all policies. */
        public Set<String> policies() {
            return Set.of(policies);
        }
    }
}
