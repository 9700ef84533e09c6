package io.ratelimit;

import static io.ratelimit.Check.check;

import java.util.List;

/** The throttlers of a policy with a key: one bucket for each key, created full when the key is first seen. */
public final class PartitionedThrottler extends PolicyThrottler {

    /**
     * Creates throttlers with their own buckets in the memory of this process, on the machine's clock.
     *
     * @throws IllegalArgumentException if the policy has no key
     */
    public PartitionedThrottler(ThrottlePolicy policy) {
        this(policy, Throttlers.local(List.of()));
    }

    PartitionedThrottler(ThrottlePolicy policy, Throttlers throttlers) {
        super(policy, throttlers);
        check(!policy.isGlobal(), "the policy of a partitioned throttler", "one with a key", policy.name());
    }

    @Override
    public Throttler forKey(String... parts) {
        return bucket(Keys.of(policy(), policy().key(), parts));
    }
}
