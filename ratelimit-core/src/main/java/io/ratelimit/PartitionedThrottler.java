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
        ThrottlePolicy policy = policy();
        List<String> names = policy.key();
        if (parts.length != names.size()) {
            throw new IllegalArgumentException("the key of '" + policy.name() + "' must be of " + names.size() + " ("
                    + String.join(", ", names) + "), but was of " + parts.length);
        }
        String[] composed = new String[parts.length];
        for (int i = 0; i < parts.length; i++) {
            if (parts[i].isBlank()) {
                throw new IllegalArgumentException(
                        "the " + names.get(i) + " in the key of '" + policy.name() + "' must be more than blanks");
            }
            composed[i] = Keys.part(parts[i], policy.ignoreCase());
        }
        return bucket(Keys.join(composed));
    }
}
