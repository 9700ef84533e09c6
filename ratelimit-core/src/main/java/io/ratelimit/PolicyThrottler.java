package io.ratelimit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The throttlers of one policy at run time. {@link #forKey} returns the throttler of one bucket, {@link #reconfigure}
 * changes the rate and the capacity of all buckets. Thread-safe: changes come one after the other, and readers never
 * wait for them.
 */
public abstract sealed class PolicyThrottler permits GlobalThrottler, PartitionedThrottler {

    private final Throttlers throttlers;
    private final List<Consumer<ThrottlePolicy>> checks = new ArrayList<>();
    private final ThrottlePolicy configured;
    private final WaitQueues.Queue queue = new WaitQueues.Queue();
    private final PolicySlots slots = new PolicySlots();
    private final @Nullable SharedSlots sharedSlots;
    private volatile ThrottlePolicy policy;
    private volatile PolicyListener listener = PolicyListener.NONE;
    private volatile boolean reportsHeld;
    private volatile @Nullable PolicyBuckets buckets;

    PolicyThrottler(ThrottlePolicy policy, Throttlers throttlers) {
        this.configured = policy.heldBy(this);
        this.policy = configured;
        this.throttlers = throttlers;
        this.sharedSlots = throttlers.sharedSlots(configured);
    }

    /** Returns the policy as it is now. */
    public ThrottlePolicy policy() {
        return policy;
    }

    /** Returns the policy as it was added, before all changes. */
    public ThrottlePolicy configured() {
        return configured;
    }

    /** Returns the backend that decides for the policy; null if this process decides. */
    public @Nullable Backend backend() {
        return throttlers.backend(policy);
    }

    /** Returns the throttlers of all policies, which have this one. */
    public Throttlers throttlers() {
        return throttlers;
    }

    boolean isOf(Throttlers throttlers) {
        return this.throttlers == throttlers;
    }

    WaitQueues.Queue queue() {
        return queue;
    }

    /** Returns the slots of the policy's calls in flight, if this process counts its own calls. */
    PolicySlots slots() {
        return slots;
    }

    /** Returns the slots that processes share; null if this process counts its own calls. */
    @Nullable
    SharedSlots sharedSlots() {
        return sharedSlots;
    }

    /** Returns how many calls of the policy run in this process. */
    int held() {
        return sharedSlots == null ? slots.held() : sharedSlots.held();
    }

    int held(String key) {
        return sharedSlots == null ? slots.held(key) : sharedSlots.held(key);
    }

    void giveBack(Decision decision) {
        throttlers.giveBack(decision.taken());
    }

    /** Returns how many calls of a charge's key may run now: after a change of the policy, not as the charge has it. */
    int inFlightNow(Charge charge) {
        ThrottlePolicy now = policy;
        BucketSpec spec = charge.spec();
        String tier = Keys.tier(charge.key());
        if (spec == charge.policy().spec()) {
            spec = now.spec();
        } else if (spec == charge.policy().tiers().get(tier)) {
            spec = now.tiers().getOrDefault(tier, spec);
        }
        return spec.inFlight() == 0 ? BucketSpec.MAX_IN_FLIGHT : spec.inFlight();
    }

    PolicyListener listener() {
        return listener;
    }

    void setListener(PolicyListener listener) {
        this.listener = listener;
        this.reportsHeld = listener != PolicyListener.NONE && listener.handlesReleased();
    }

    /** Returns whether the next call's time in flight is needed: by the listener, or for the mean. */
    boolean measuresHeld() {
        return reportsHeld || slots.isMeasured();
    }

    /** Returns the buckets in the store that used them last; null before the first use. */
    @Nullable
    PolicyBuckets buckets() {
        return buckets;
    }

    void setBuckets(PolicyBuckets buckets) {
        this.buckets = buckets;
    }

    /**
     * Returns the throttler of one key.
     *
     * @param parts the texts of the key's parts, in the policy's order, none of them blank; none for a global policy
     * @throws IllegalArgumentException if there are not as many parts as the policy's key has, or one is blank
     */
    public abstract Throttler forKey(String... parts);

    /** Returns the throttler of the bucket of a key, as {@link Keys} composes it. */
    Throttler bucket(String key) {
        return new BucketThrottler(null, key, null);
    }

    /** Returns the throttler of the calls of the one bucket that have the guaranteed share of a key. */
    Throttler lane(String key) {
        return new BucketThrottler(null, "", key);
    }

    /**
     * Changes the rate and the capacity of the policy, but not those of its tiers, nor those that replace the policy's
     * for some keys. All buckets follow at their next use: the tokens in them are kept, cut to the new capacity, and
     * the time until then counts at the old rate. Waiting callers keep their turn. Of two concurrent changes the later
     * one holds.
     *
     * @throws IllegalArgumentException if a {@linkplain #checkChanges check} refuses the change; the old spec stays
     */
    public void reconfigure(BucketSpec spec) {
        reconfigure(before -> spec);
    }

    /**
     * Like {@link #reconfigure(BucketSpec)}, with a spec made from the present one. No other change comes between.
     *
     * @throws IllegalArgumentException if a {@linkplain #checkChanges check} refuses the change; the old spec stays
     */
    public synchronized void reconfigure(UnaryOperator<BucketSpec> change) {
        change(policy.withSpec(Objects.requireNonNull(change.apply(policy.spec()), "spec")));
    }

    /**
     * Changes the rate and the capacity of a tier, as {@link #reconfigure(BucketSpec)} does for calls without a tier.
     *
     * @throws IllegalArgumentException if the policy has no such tier, or a {@linkplain #checkChanges check} refuses
     *     the change; the old spec stays
     */
    public void reconfigure(String tier, BucketSpec spec) {
        reconfigure(tier, before -> spec);
    }

    /**
     * Like {@link #reconfigure(String, BucketSpec)}, with a spec made from the present one. No other change comes
     * between.
     *
     * @throws IllegalArgumentException if the policy has no such tier, or a {@linkplain #checkChanges check} refuses
     *     the change; the old spec stays
     */
    public synchronized void reconfigure(String tier, UnaryOperator<BucketSpec> change) {
        Map<String, BucketSpec> tiers = new HashMap<>(policy.tiers());
        if (tiers.computeIfPresent(tier, (name, spec) -> Objects.requireNonNull(change.apply(spec), "spec")) == null) {
            throw new IllegalArgumentException("the policy '" + policy.name() + "' has no tier '" + tier + "'"
                    + (tiers.isEmpty()
                            ? ", nor any other"
                            : "; its tiers are: " + String.join(", ", new TreeSet<>(tiers.keySet()))));
        }
        change(policy.withTiers(tiers));
    }

    private void change(ThrottlePolicy next) {
        ThrottlePolicy before = policy;
        if (!next.equals(before)) {
            verifyChange(next);
            policy = next;
            slots.limitChanged();
            throttlers.listener().reconfigured(before, next);
        }
    }

    /**
     * Returns normally if a change to this version of the policy would be accepted. Nothing is changed.
     *
     * @throws IllegalArgumentException if a {@linkplain #checkChanges check} refuses the change
     */
    public synchronized void verifyChange(ThrottlePolicy next) {
        throttlers.verify(next);
        checks.forEach(check -> check.accept(next));
    }

    /**
     * Registers a check, and calls it with the policy as it is now and later with the result of each change. A change
     * that a check throws for is refused. Use it where code depends on a property of the policy, such as a capacity
     * that is at least the cost of each call.
     *
     * @param check throws an {@link IllegalArgumentException} that states the requirement; called by one thread at a
     *     time
     * @throws IllegalArgumentException if the check refuses the policy as it is now
     */
    public synchronized void checkChanges(Consumer<ThrottlePolicy> check) {
        check.accept(policy);
        checks.add(check);
    }

    private final class BucketThrottler implements Throttler {

        private final @Nullable String tier;
        private final String key;
        private final @Nullable String lane;

        BucketThrottler(@Nullable String tier, String key, @Nullable String lane) {
            this.tier = tier;
            this.key = key;
            this.lane = lane;
        }

        @Override
        public ThrottlePolicy policy() {
            return policy;
        }

        @Override
        public Throttler inTier(String tier) {
            return new BucketThrottler(tier, key, lane);
        }

        @Override
        public Charge charge(long cost) {
            Charge charge = Charge.of(policy, tier, key, cost);
            return lane == null ? charge : charge.guaranteedTo(lane);
        }

        @Override
        public Decision decide(long cost) {
            return throttlers.decide(List.of(charge(cost)));
        }

        @Override
        public Decision acquire(long cost, Duration maxWait) throws InterruptedException {
            return throttlers.acquire(List.of(charge(cost).withMaxWait(maxWait)));
        }

        @Override
        public BucketSnapshot snapshot() {
            return throttlers.snapshot(charge(1));
        }

        @Override
        public void reset() {
            throttlers.reset(charge(1));
        }
    }
}
