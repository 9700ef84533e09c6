package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What holds for some keys of a policy in place of what holds for the others. A key that is named has a bucket for
 * itself, however many there are. Of addresses in a network there may be any number: their buckets are as those of a
 * tier, with overflow buckets of their own.
 */
public final class KeyOverride {

    private final ThrottlePolicy policy;
    private final BucketSpec spec;
    private final @Nullable String tier;

    private KeyOverride(ThrottlePolicy policy, BucketSpec spec, @Nullable String tier) {
        this.policy = policy;
        this.spec = spec;
        this.tier = tier;
    }

    /** Other buckets, for keys that are named. */
    public static KeyOverride ofKeys(ThrottlePolicy policy, BucketSpec spec) {
        return new KeyOverride(policy, spec, null);
    }

    /**
     * Other buckets, for the addresses of networks.
     *
     * @param name unlike that of another override of the policy
     */
    public static KeyOverride ofNetworks(ThrottlePolicy policy, BucketSpec spec, String name) {
        String tier = "\0" + name;
        return new KeyOverride(policy.withTiers(Map.of(tier, spec)), spec, tier);
    }

    /** The same in another mode, if that refuses less: what the keys are charged is only watched, or they are free. */
    public KeyOverride withMode(Mode mode) {
        return new KeyOverride(policy.withMode(mode.weaker(policy.mode())), spec, tier);
    }

    /** What a key is charged, or null if it is free. */
    @Nullable
    Charge charge(String key, long cost) {
        if (policy.mode() == Mode.OFF) {
            return null;
        }
        return tier != null ? Charge.of(policy, tier, key, cost) : new Charge(policy, spec, Keys.reserved(key), cost);
    }
}
