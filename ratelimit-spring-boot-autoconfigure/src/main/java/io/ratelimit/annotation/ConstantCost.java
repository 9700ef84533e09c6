package io.ratelimit.annotation;

import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.OverrideTable;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.util.function.Consumer;
import java.util.function.ObjLongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The constant cost of an annotation. Each bucket that a call may have must be able to hold it, also after a change.
 *
 * @param tokens the cost, limited to the policy's maximum
 * @param tier the one tier of the calls; an empty text if they have none, and null if they may be in any
 */
record ConstantCost(long tokens, @Nullable String tier, SourceLocation location) implements Consumer<ThrottlePolicy> {

    /** @throws RateLimitConfigurationException if a bucket could never hold the cost */
    void check(String text, ThrottlePolicy policy, OverrideTable overrides) {
        ObjLongConsumer<String> check = (owner, capacity) -> {
            if (capacity < tokens) {
                throw location.invalid(
                        "has the cost " + text + ", but the capacity of " + owner + " is " + capacity
                                + ": no call could ever be allowed",
                        "Lower the cost to at most " + capacity + ", or raise the capacity.");
            }
        };
        forEachCapacity(policy, check);
        overrides.specs().forEach(spec -> check.accept("an override of '" + policy.name() + "'", spec.capacity()));
    }

    /** Checks a change of the policy. Overrides don't change. */
    @Override
    public void accept(ThrottlePolicy changed) {
        forEachCapacity(changed, (owner, capacity) -> {
            if (capacity < tokens) {
                throw new IllegalArgumentException("capacity of " + owner + " must be at least " + tokens
                        + ", the cost of " + location.annotation() + ", but was " + capacity
                        + ": no call could ever be allowed");
            }
        });
    }

    private void forEachCapacity(ThrottlePolicy policy, ObjLongConsumer<String> check) {
        String name = "'" + policy.name() + "'";
        if (tier == null || !policy.tiers().containsKey(tier)) {
            check.accept(name, policy.spec().capacity());
        }
        policy.tiers().forEach((other, spec) -> {
            if (tier == null || other.equals(tier)) {
                check.accept("the tier '" + other + "' of " + name, spec.capacity());
            }
        });
        Shares shares = policy.shares();
        if (shares != null) {
            long capacity = policy.spec().capacity();
            shares.leave().forEach((other, percent) -> {
                if (tier == null || other.equals(tier)) {
                    long left = Math.max(shares.reserve(), (capacity * percent + 99) / 100);
                    check.accept("the part of " + name + " for '" + other + "'", capacity - left);
                }
            });
        }
    }
}
