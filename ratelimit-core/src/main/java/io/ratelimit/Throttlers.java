package io.ratelimit;

import static io.ratelimit.Check.check;

import io.ratelimit.Decision.Answer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The throttlers by the names of their policies, over one store. Asks the store, tells the listener. Thread-safe.
 */
public final class Throttlers {

    private volatile Map<String, Throttler> throttlers = Map.of();
    private final BucketStore store;
    private final ThrottleListener listener;
    private final WaitingLines lines;
    private final ShadowLines shadowLines;
    private final Taker atOnce;
    private final Taker watched;

    /**
     * @param time that calls wait by; the store's own
     * @throws IllegalArgumentException if two policies have the same name
     */
    public Throttlers(
            Collection<ThrottlePolicy> policies, BucketStore store, TimeSource time, ThrottleListener listener) {
        this.store = store;
        this.listener = listener;
        this.lines = new WaitingLines(store, time);
        this.shadowLines = new ShadowLines(store, time);
        this.atOnce = store::take;
        this.watched = one -> shadowLines.take(one.get(0));
        policies.forEach(this::add);
    }

    /**
     * Adds a policy that became known later than the others.
     *
     * @throws IllegalArgumentException if there is one of that name
     */
    public synchronized void add(ThrottlePolicy policy) {
        Map<String, Throttler> more = new LinkedHashMap<>(throttlers);
        Throttler throttler =
                policy.isGlobal() ? new GlobalThrottler(policy, this) : new PartitionedThrottler(policy, this);
        check(more.put(policy.name(), throttler) == null, "the name of a policy", "unique", policy.name());
        throttlers = more;
        listener.added(policy);
    }

    /** Throttlers with their buckets in memory, on the machine's clock. */
    public static Throttlers local(Collection<ThrottlePolicy> policies) {
        return local(policies, TimeSource.system());
    }

    /** Throttlers with their buckets in memory, on the given clock. */
    public static Throttlers local(Collection<ThrottlePolicy> policies, TimeSource time) {
        return new Throttlers(policies, BucketStore.local(time), time, ThrottleListener.NONE);
    }

    /**
     * The throttler of a policy.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     */
    public Throttler get(String policy) {
        Map<String, Throttler> known = throttlers;
        Throttler throttler = known.get(policy);
        if (throttler == null) {
            throw new UnknownPolicyException(policy, known.keySet());
        }
        return throttler;
    }

    /** All throttlers, in the order of their policies. */
    public Collection<Throttler> all() {
        return List.copyOf(throttlers.values());
    }

    /**
     * Takes all of the charges at once and allows the call, or takes none and says why not. Policies that are off are not
     * asked. Those in shadow mode are asked one by one after the others have allowed; what they say is told to the
     * listener and has no part in the answer, which only carries what they {@link Decision#shadows took}.
     */
    public Decision decide(List<Charge> charges) {
        return decide(charges, atOnce, atOnce);
    }

    /**
     * Like {@link #decide}, but where tokens are short and will come within the charges' {@link Charge#maxWait}, takes them
     * ahead and waits in line for them. Each policy takes at once and the longest wait counts. Policies in shadow mode keep
     * nobody waiting, and allow where the call would have waited in their lines.
     *
     * @throws InterruptedException if the thread is interrupted while it waits; what was taken is given back
     */
    public Decision acquire(List<Charge> charges) throws InterruptedException {
        if (!WaitingLines.anyMayWait(charges)) {
            return decide(charges);
        }
        try (WaitingLines.Call call = lines.call()) {
            Decision decision = decide(charges, call::take, watched);
            call.await(decision);
            return decision;
        }
    }

    private Decision decide(List<Charge> charges, Taker taker, Taker shadowTaker) {
        List<Charge> enforced = inMode(ThrottlePolicy.Mode.ENFORCE, charges);
        Decision decision = take(enforced, taker);
        return decision.allowed() && enforced.size() < charges.size()
                ? decision.withShadows(askShadows(charges, shadowTaker))
                : decision;
    }

    /** What those of them took that would have allowed the call. */
    private List<Answer> askShadows(List<Charge> charges, Taker taker) {
        List<Answer> taken = new ArrayList<>();
        for (Charge shadow : inMode(ThrottlePolicy.Mode.SHADOW, charges)) {
            taken.addAll(take(List.of(shadow), taker).taken());
        }
        return taken;
    }

    private interface Taker {
        Decision take(List<Charge> charges);
    }

    private Decision take(List<Charge> charges, Taker taker) {
        if (charges.isEmpty()) {
            return Decision.of(List.of());
        }
        List<Answer> missing = missingKeys(charges);
        Decision decision = missing.isEmpty() ? taker.take(charges) : Decision.of(missing);
        listener.decided(decision);
        tellEvents(decision.answers());
        return decision;
    }

    private void tellEvents(List<Answer> answers) {
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            if (answer.shared()) {
                listener.happened(answer.policy(), ThrottleEvent.OVERFLOW);
            }
            if (answer.standIn()) {
                listener.happened(answer.policy(), ThrottleEvent.BACKEND_FAILURE);
            }
        }
    }

    private static List<Answer> missingKeys(List<Charge> charges) {
        List<Answer> missing = List.of();
        for (int i = 0; i < charges.size(); i++) {
            if (!charges.get(i).hasKey()) {
                missing = missing.isEmpty() ? new ArrayList<>() : missing;
                missing.add(Decision.missingKey(charges.get(i)));
            }
        }
        return missing;
    }

    /** The charges whose policies are in the mode: the list itself where all are. */
    private static List<Charge> inMode(ThrottlePolicy.Mode mode, List<Charge> charges) {
        for (int i = 0; i < charges.size(); i++) {
            if (charges.get(i).policy().mode() != mode) {
                return charges.stream()
                        .filter(charge -> charge.policy().mode() == mode)
                        .toList();
            }
        }
        return charges;
    }

    /**
     * Puts back what an allowed decision {@linkplain Decision#taken took}, for a call that was not made after all. Where
     * others wait in line, only what none of their tokens stand on comes back.
     */
    public void giveBack(List<Answer> taken) {
        if (!taken.isEmpty()) {
            store.giveBack(taken);
        }
    }

    /**
     * The bucket of a key as it is now; of a global policy with no parts. A key that was never seen has a full bucket.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     * @throws IllegalArgumentException if the parts are not those of the policy's key
     * @throws BackendException if the bucket is not in this process and can't be seen
     */
    public BucketSnapshot snapshot(String policy, String... key) {
        return get(policy).forKey(key).snapshot();
    }

    /**
     * The bucket that a charge would be taken from, as it is now.
     *
     * @throws BackendException if the bucket is not in this process and can't be seen
     */
    public BucketSnapshot look(Charge charge) {
        return store.look(charge);
    }

    /**
     * Forgets the bucket of a key, so that the next call finds it full.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     * @throws IllegalArgumentException if the parts are not those of the policy's key
     * @throws BackendException if the bucket is not in this process, and perhaps wasn't forgotten
     */
    public void reset(String policy, String... key) {
        get(policy).forKey(key).reset();
    }

    /**
     * Forgets the bucket that a charge would be taken from; one that is shared with other keys stays.
     *
     * @throws BackendException if the bucket is not in this process, and perhaps wasn't forgotten
     */
    public void forget(Charge charge) {
        store.forget(charge);
    }

    /**
     * Changes size and rate of a policy while it runs, but for its tiers, and for keys that were given others in their
     * place. All keys follow at their next use: the tokens that are there are kept, cut to the new capacity, and the time
     * until then counts at the old rate. Who waits in line keeps his moment. Of two changes at once the later holds.
     *
     * <p>For a new rate alone say {@code get(policy).reconfigure(spec -> spec.withRate(rate))}.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     * @throws IllegalArgumentException if {@linkplain Throttler#checkChanges a check} refuses it; the old one stays
     */
    public void reconfigure(String policy, BucketSpec spec) {
        get(policy).reconfigure(spec);
    }

    /**
     * Changes size and rate of a tier of a policy while it runs, as {@link #reconfigure(String, BucketSpec)} does for calls
     * that belong to none.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     * @throws IllegalArgumentException if the policy has no such tier, or {@linkplain Throttler#checkChanges a check}
     *     refuses it; the old one stays
     */
    public void reconfigure(String policy, String tier, BucketSpec spec) {
        get(policy).reconfigure(tier, spec);
    }

    /** Who is told of decisions: for those who know of events that none shows. */
    public ThrottleListener listener() {
        return listener;
    }

    /** How many buckets of a policy this process holds: none of those that are elsewhere. */
    public long size(String policy) {
        return store.size(get(policy).policy());
    }

    /** How many calls of a policy wait in line; of one in shadow mode, how many would. */
    public int waiting(String policy) {
        ThrottlePolicy known = get(policy).policy();
        return known.mode() == ThrottlePolicy.Mode.SHADOW ? shadowLines.size(known) : lines.size(known);
    }
}
