package io.ratelimit;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** The policy of a throttler as it is now. Thread-safe: changes come one after the other, and who reads waits for none. */
final class LivePolicy {

    private final ThrottleListener listener;
    private final List<Consumer<ThrottlePolicy>> checks = new ArrayList<>();
    private volatile ThrottlePolicy policy;

    /** @param listener is told of each change, in their order */
    LivePolicy(ThrottlePolicy policy, ThrottleListener listener) {
        this.policy = policy;
        this.listener = listener;
    }

    ThrottlePolicy get() {
        return policy;
    }

    synchronized void checkChanges(Consumer<ThrottlePolicy> check) {
        check.accept(policy);
        checks.add(check);
    }

    synchronized void reconfigure(UnaryOperator<BucketSpec> change) {
        change(policy.withSpec(Objects.requireNonNull(change.apply(policy.spec()), "spec")));
    }

    synchronized void reconfigure(String tier, UnaryOperator<BucketSpec> change) {
        Map<String, BucketSpec> tiers = new HashMap<>(policy.tiers());
        if (tiers.computeIfPresent(tier, (name, spec) -> Objects.requireNonNull(change.apply(spec), "spec")) == null) {
            throw new IllegalArgumentException("the policy '" + policy.name() + "' has no tier '" + tier + "'"
                    + (policy.tiers().isEmpty()
                            ? ", nor any other"
                            : "; its tiers are: "
                                    + String.join(
                                            ", ", new TreeSet<>(policy.tiers().keySet()))));
        }
        change(policy.withTiers(tiers));
    }

    private void change(ThrottlePolicy next) {
        ThrottlePolicy before = policy;
        if (!next.equals(before)) {
            checks.forEach(check -> check.accept(next));
            policy = next;
            listener.reconfigured(before, next);
        }
    }
}
