package io.ratelimit;

import static io.ratelimit.Check.check;

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

    /**
     * @throws IllegalArgumentException if two policies have the same name
     */
    public Throttlers(Collection<ThrottlePolicy> policies, BucketStore store, ThrottleListener listener) {
        this.store = store;
        this.listener = listener;
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
    }

    /** Throttlers with their buckets in memory, on the machine's clock. */
    public static Throttlers local(Collection<ThrottlePolicy> policies) {
        return local(policies, TimeSource.system());
    }

    /** Throttlers with their buckets in memory, on the given clock. */
    public static Throttlers local(Collection<ThrottlePolicy> policies, TimeSource time) {
        return new Throttlers(policies, BucketStore.local(time), ThrottleListener.NONE);
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
     * Takes all of the charges and allows the call, or takes none and says why not. Policies that are off are not
     * asked. Those in shadow mode are asked one by one after the others have allowed; what they say is told to the
     * listener and is not in the answer.
     */
    public Decision decide(List<Charge> charges) {
        List<Charge> enforced = inMode(ThrottlePolicy.Mode.ENFORCE, charges);
        Decision decision = take(enforced);
        if (decision.allowed() && enforced.size() < charges.size()) {
            for (Charge shadow : inMode(ThrottlePolicy.Mode.SHADOW, charges)) {
                take(List.of(shadow));
            }
        }
        return decision;
    }

    private Decision take(List<Charge> charges) {
        if (charges.isEmpty()) {
            return Decision.of(List.of());
        }
        List<Decision.Answer> missing = missingKeys(charges);
        Decision decision = missing.isEmpty() ? store.take(charges) : Decision.of(missing);
        listener.decided(decision);
        return decision;
    }

    private static List<Decision.Answer> missingKeys(List<Charge> charges) {
        List<Decision.Answer> missing = List.of();
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
     * Puts back what an allowed decision took from the enforced policies, for a call that was not made after all.
     * Policies in shadow mode keep what they took.
     */
    public void giveBack(List<Charge> charges) {
        List<Charge> enforced = inMode(ThrottlePolicy.Mode.ENFORCE, charges);
        if (!enforced.isEmpty()) {
            store.giveBack(enforced);
        }
    }

    /**
     * The bucket of a key as it is now; of a global policy with no parts. A key that was never seen has a full bucket.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     * @throws IllegalArgumentException if the parts are not those of the policy's key
     */
    public BucketSnapshot snapshot(String policy, String... key) {
        return store.look(get(policy).forKey(key).charge(1));
    }

    /**
     * Forgets the bucket of a key, so that the next call finds it full.
     *
     * @throws UnknownPolicyException if there is no policy of that name
     * @throws IllegalArgumentException if the parts are not those of the policy's key
     */
    public void reset(String policy, String... key) {
        store.forget(get(policy).forKey(key).charge(1));
    }
}
