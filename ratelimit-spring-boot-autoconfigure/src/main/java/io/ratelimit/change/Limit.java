package io.ratelimit.change;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The name of a limit that can be changed: a policy's own, or that of one of its tiers.
 *
 * @param tier null for the policy's own limit
 */
record Limit(String policy, @Nullable String tier) {

    static Limit of(String text) {
        int slash = text.indexOf('/');
        return slash < 0 ? new Limit(text, null) : new Limit(text.substring(0, slash), text.substring(slash + 1));
    }

    String text() {
        return tier == null ? policy : policy + "/" + tier;
    }

    BucketSpec in(ThrottlePolicy version) {
        BucketSpec spec = tier == null ? version.spec() : version.tiers().get(tier);
        if (spec == null) {
            throw new IllegalArgumentException("the policy has no such tier");
        }
        return spec;
    }

    ThrottlePolicy with(BucketSpec spec, ThrottlePolicy version) {
        if (tier == null) {
            return version.withSpec(spec);
        }
        Map<String, BucketSpec> tiers = new HashMap<>(version.tiers());
        tiers.put(tier, spec);
        return version.withTiers(tiers);
    }
}
