package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** A throttler with one bucket for all calls. */
public final class GlobalThrottler implements Throttler {

    private static final String KEY = "";

    private final LivePolicy policy;
    private final Throttlers throttlers;

    /**
     * A throttler of its own, with its bucket in memory.
     *
     * @throws IllegalArgumentException if the policy has a key
     */
    public GlobalThrottler(ThrottlePolicy policy) {
        this(policy, Throttlers.local(List.of()));
    }

    GlobalThrottler(ThrottlePolicy policy, Throttlers throttlers) {
        check(policy.isGlobal(), "the policy of a global throttler", "one without a key", policy.key());
        this.policy = new LivePolicy(policy, throttlers.listener());
        this.throttlers = throttlers;
    }

    @Override
    public ThrottlePolicy policy() {
        return policy.get();
    }

    @Override
    public Throttler forKey(String... parts) {
        if (parts.length > 0) {
            throw new IllegalArgumentException("the policy '" + policy().name() + "' is global and has no keys");
        }
        return this;
    }

    @Override
    public Throttler inTier(String tier) {
        return new BucketThrottler(this, throttlers, tier, KEY);
    }

    @Override
    public Charge charge(long cost) {
        return Charge.of(policy(), KEY, cost);
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
