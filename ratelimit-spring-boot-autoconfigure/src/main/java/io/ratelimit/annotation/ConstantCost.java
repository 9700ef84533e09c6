package io.ratelimit.annotation;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.OverrideTable;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
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
        BiConsumer<String, BucketSpec> check = (owner, spec) -> {
            if (spec.capacity() < tokens) {
                throw location.invalid(
                        "has the cost " + text + ", but the capacity of " + owner + " is " + spec.capacity()
                                + ": no call could ever be allowed",
                        "Lower the cost to at most " + spec.capacity() + ", or raise the capacity.");
            }
        };
        forEachSpec(policy, check);
        overrides.specs().forEach(spec -> check.accept("an override of '" + policy.name() + "'", spec));
    }

    /** Checks a change of the policy. Overrides don't change. */
    @Override
    public void accept(ThrottlePolicy changed) {
        forEachSpec(changed, (owner, spec) -> {
            if (spec.capacity() < tokens) {
                throw new IllegalArgumentException("capacity of " + owner + " must be at least " + tokens
                        + ", the cost of " + location.annotation() + ", but was " + spec.capacity()
                        + ": no call could ever be allowed");
            }
        });
    }

    private void forEachSpec(ThrottlePolicy policy, BiConsumer<String, BucketSpec> check) {
        String name = "'" + policy.name() + "'";
        if (tier == null || !policy.tiers().containsKey(tier)) {
            check.accept(name, policy.spec());
        }
        policy.tiers().forEach((other, spec) -> {
            if (tier == null || other.equals(tier)) {
                check.accept("the tier '" + other + "' of " + name, spec);
            }
        });
    }
}
