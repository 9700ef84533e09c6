package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.List;
import java.util.Objects;

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

    /**
     * Returns the throttler of the calls that have the guaranteed share of a key. A share with a name is that of
     * {@link #inTier}.
     *
     * @param parts the texts of the parts of the shares' key, in their order, none of them blank
     * @throws IllegalArgumentException if keys have no guaranteed shares, or the parts don't fit the shares' key
     */
    public Throttler guaranteedTo(String... parts) {
        Shares shares = policy().shares();
        check(
                shares != null && shares.each() != null,
                "the policy '" + policy().name() + "'",
                "one with shares that are guaranteed to keys",
                policy());
        return lane(Keys.of(policy(), Objects.requireNonNull(shares).key(), parts));
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
