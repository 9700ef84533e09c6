package io.ratelimit.actuate;

import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Finds the bucket that an operator means. */
@FunctionalInterface
public interface BucketFinder {

    /**
     * What a call of one token is charged that has this key.
     *
     * @param policy as it is now
     * @param key the texts of the key's parts as they are written, none of them blank; empty for a global bucket
     * @param tier that the bucket is in, one of the policy's; null for none
     * @return null if the policy is off for the key
     * @throws IllegalArgumentException if the policy has no such keys; what was written is not in the message
     */
    @Nullable
    Charge find(ThrottlePolicy policy, List<String> key, @Nullable String tier);
}
