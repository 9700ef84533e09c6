package io.ratelimit.annotation;

import io.ratelimit.ThrottlePolicy;
import java.util.function.Consumer;

/**
 * Refuses to let a policy be changed so that it could never pay what an annotation takes for each call.
 *
 * @param place the annotation, as messages name it
 */
record ConstantCost(String place, long tokens) implements Consumer<ThrottlePolicy> {

    @Override
    public void accept(ThrottlePolicy policy) {
        if (policy.spec().capacity() < tokens) {
            throw new IllegalArgumentException("capacity of '" + policy.name() + "' must be at least " + tokens
                    + ", the cost of " + place + ", but was " + policy.spec().capacity()
                    + ": no call could ever be allowed");
        }
    }
}
