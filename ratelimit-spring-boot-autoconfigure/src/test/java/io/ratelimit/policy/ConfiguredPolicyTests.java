package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

/** The checks of changes of a policy: the configuration could have the changed policy. */
class ConfiguredPolicyTests {

    @Test
    void aChangeLeavesEnoughForTheCostOfEachShare() {
        ConfiguredPolicy shop =
                policy(Map.of("rate", "100/s", "cost", "5", "tier", "role", "shares.batch.leave", "30%"));
        ThrottlePolicy policy = shop.policy();

        shop.checkChange(policy.withSpec(policy.spec().withCapacity(8)));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> shop.checkChange(policy.withSpec(policy.spec().withCapacity(7))))
                .withMessageStartingWith(
                        "The requests of 'batch' can take at most 4 of the capacity of 'api', 7, but cost 5: none"
                                + " could ever be allowed");
    }

    @Test
    void aLeaseIsShortForAChangedLimitToo() {
        ConfiguredPolicy leased = policy(Map.of(
                "rate", "600/1m", "capacity", "800", "lease", "15s", "backend", "redis", "tiers.pro.rate", "600/1m"));
        ThrottlePolicy policy = leased.policy();
        BucketSpec fast = BucketSpec.of("6000/1m").withCapacity(800);

        leased.checkChange(policy.withSpec(BucketSpec.of("800/1m")));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> leased.checkChange(policy.withSpec(fast)))
                .withMessageStartingWith(
                        "'ratelimit.policies.api.lease' must be at most a quarter of the time in which a"
                                + " bucket of 6000/1m, capacity 800 fills, 2s, but was 15s");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> leased.checkChange(policy.withTiers(Map.of("pro", fast))));
    }

    private static ConfiguredPolicy policy(Map<String, String> properties) {
        Map<String, String> named = new HashMap<>();
        properties.forEach((name, value) -> named.put("ratelimit.policies.api." + name, value));
        RateLimitProperties bound = new Binder(new MapConfigurationPropertySource(named))
                .bindOrCreate("ratelimit", RateLimitProperties.class);
        return PolicyReader.read(bound, false).get(0);
    }
}
