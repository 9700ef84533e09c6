package io.ratelimit;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The throttler of one bucket.
 *
 * @param whole the throttler of the policy
 * @param tier that the bucket is in, if any
 * @param key as {@link Keys} composes it
 */
record BucketThrottler(
        Throttler whole, Throttlers throttlers, @Nullable String tier, String key) implements Throttler {

    @Override
    public ThrottlePolicy policy() {
        return whole.policy();
    }

    @Override
    public Throttler forKey(String... parts) {
        return whole.forKey(parts);
    }

    @Override
    public Throttler inTier(String tier) {
        return new BucketThrottler(whole, throttlers, tier, key);
    }

    @Override
    public Charge charge(long cost) {
        return Charge.of(policy(), tier, key, cost);
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
        return throttlers.look(charge(1));
    }

    @Override
    public void reset() {
        throttlers.forget(charge(1));
    }

    @Override
    public void reconfigure(UnaryOperator<BucketSpec> change) {
        if (tier != null && policy().tiers().containsKey(tier)) {
            whole.reconfigure(tier, change);
        } else {
            whole.reconfigure(change);
        }
    }

    @Override
    public void reconfigure(String tier, UnaryOperator<BucketSpec> change) {
        whole.reconfigure(tier, change);
    }

    @Override
    public void checkChanges(Consumer<ThrottlePolicy> check) {
        whole.checkChanges(check);
    }
}
