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

    private final @Nullable BucketSpec spec;
    private final @Nullable String tier;
    private final Mode mode;
    private volatile @Nullable Derived derived;

    private KeyOverride(@Nullable BucketSpec spec, @Nullable String tier, Mode mode) {
        this.spec = spec;
        this.tier = tier;
        this.mode = mode;
    }

    /**
     * Other buckets, for keys that are named.
     *
     * @param spec that they keep, whatever the policy's is changed to; null for the policy's own
     */
    public static KeyOverride ofKeys(@Nullable BucketSpec spec) {
        return new KeyOverride(spec, null, Mode.ENFORCE);
    }

    /**
     * Other buckets, for the addresses of networks.
     *
     * @param spec that they keep, whatever the policy's is changed to; null for the policy's own
     * @param name unlike that of another override of the policy
     */
    public static KeyOverride ofNetworks(@Nullable BucketSpec spec, String name) {
        return new KeyOverride(spec, "\0" + name, Mode.ENFORCE);
    }

    /** The same in another mode, if that refuses less: what the keys are charged is only watched, or they are free. */
    public KeyOverride withMode(Mode mode) {
        return new KeyOverride(spec, tier, mode.weaker(this.mode));
    }

    /** What a key of the policy is charged, or null if it is free. */
    @Nullable
    Charge charge(ThrottlePolicy policy, String key, long cost) {
        Derived known = derived;
        if (known == null || known.policy != policy) {
            known = derive(policy);
            derived = known;
        }
        if (known.own.mode() == Mode.OFF) {
            return null;
        }
        return tier != null
                ? Charge.of(known.own, tier, key, cost)
                : new Charge(known.own, known.spec, Keys.reserved(key), cost);
    }

    private Derived derive(ThrottlePolicy policy) {
        BucketSpec held = spec == null ? policy.spec() : spec;
        ThrottlePolicy own = policy.withMode(mode.weaker(policy.mode()));
        return new Derived(policy, tier == null ? own : own.withTiers(Map.of(tier, held)), held);
    }

    /** What the override makes of a policy, until that is changed. */
    private record Derived(ThrottlePolicy policy, ThrottlePolicy own, BucketSpec spec) {}
}
