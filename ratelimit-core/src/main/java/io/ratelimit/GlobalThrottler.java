package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.List;

/** The throttler of a policy without a key: one bucket serves all calls. */
public final class GlobalThrottler extends PolicyThrottler implements Throttler {

    private final Throttler bucket = bucket("");

    /**
     * Creates a throttler with its own bucket in the memory of this process, on the machine's clock.
     *
     * @throws IllegalArgumentException if the policy has a key
     */
    public GlobalThrottler(ThrottlePolicy policy) {
        this(policy, Throttlers.local(List.of()));
    }

    GlobalThrottler(ThrottlePolicy policy, Throttlers throttlers) {
        super(policy, throttlers);
        check(policy.isGlobal(), "the policy of a global throttler", "one without a key", policy.key());
    }

    /**
     * Returns this throttler, for code that serves policies with and without a key.
     *
     * @throws IllegalArgumentException if there are parts
     */
    @Override
    public Throttler forKey(String... parts) {
        if (parts.length > 0) {
            throw new IllegalArgumentException("the policy '" + policy().name() + "' is global and has no keys");
        }
        return this;
    }

    @Override
    public Throttler inTier(String tier) {
        return bucket.inTier(tier);
    }

    @Override
    public Charge charge(long cost) {
        return bucket.charge(cost);
    }

    @Override
    public Decision decide(long cost) {
        return bucket.decide(cost);
    }

    @Override
    public Decision acquire(long cost, Duration maxWait) throws InterruptedException {
        return bucket.acquire(cost, maxWait);
    }

    @Override
    public BucketSnapshot snapshot() {
        return bucket.snapshot();
    }

    @Override
    public void reset() {
        bucket.reset();
    }
}
