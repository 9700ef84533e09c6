package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** A throttler with a bucket for each key, created full when the key is first seen. */
public final class PartitionedThrottler implements Throttler {

    private final LivePolicy policy;
    private final Throttlers throttlers;

    /**
     * A throttler of its own, with its buckets in memory.
     *
     * @throws IllegalArgumentException if the policy has no key
     */
    public PartitionedThrottler(ThrottlePolicy policy) {
        this(policy, Throttlers.local(List.of()));
    }

    PartitionedThrottler(ThrottlePolicy policy, Throttlers throttlers) {
        check(!policy.isGlobal(), "the policy of a partitioned throttler", "one with a key", policy.name());
        this.policy = new LivePolicy(policy, throttlers.listener());
        this.throttlers = throttlers;
    }

    @Override
    public ThrottlePolicy policy() {
        return policy.get();
    }

    @Override
    public Throttler forKey(String... parts) {
        ThrottlePolicy policy = policy();
        if (parts.length != policy.key().size()) {
            throw new IllegalArgumentException(
                    "the key of '" + policy.name() + "' must be of " + shape() + ", but was of " + parts.length);
        }
        String[] composed = new String[parts.length];
        for (int i = 0; i < parts.length; i++) {
            if (parts[i].isBlank()) {
                throw new IllegalArgumentException("the " + policy.key().get(i) + " in the key of '" + policy.name()
                        + "' must be more than blanks");
            }
            composed[i] = Keys.part(parts[i], policy.ignoreCase());
        }
        return new BucketThrottler(this, throttlers, null, Keys.join(composed));
    }

    private String shape() {
        return policy().key().size() + " (" + String.join(", ", policy().key()) + ")";
    }

    @Override
    public Throttler inTier(String tier) {
        throw withoutKey();
    }

    @Override
    public Charge charge(long cost) {
        throw withoutKey();
    }

    private IllegalStateException withoutKey() {
        return new IllegalStateException("the policy '" + policy().name() + "' has a bucket for each key: say forKey("
                + String.join(", ", policy().key()) + ") first");
    }

    @Override
    public Decision decide(long cost) {
        throw withoutKey();
    }

    @Override
    public Decision acquire(long cost, Duration maxWait) {
        throw withoutKey();
    }

    @Override
    public BucketSnapshot snapshot() {
        throw withoutKey();
    }

    @Override
    public void reset() {
        throw withoutKey();
    }

    @Override
    public void reconfigure(UnaryOperator<BucketSpec> change) {
        policy.reconfigure(change);
    }

    @Override
    public void reconfigure(String tier, UnaryOperator<BucketSpec> change) {
        policy.reconfigure(tier, change);
    }

    @Override
    public void checkChanges(Consumer<ThrottlePolicy> check) {
        policy.checkChanges(check);
    }
}
