package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.Charge;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.BucketFinder;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.OverrideReader;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.MissingKey;
import io.ratelimit.key.Overrides;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.WrittenKey;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Finds buckets by keys as they are written, as requests find them by theirs. Immutable. */
final class ConfiguredBuckets implements BucketFinder {

    private final Map<String, RequestKey> keys = new HashMap<>();
    private final Map<String, WrittenKey> written = new HashMap<>();
    private final @Nullable RateLimitedOperations operations;
    private final RequestKey ofCalls;

    /**
     * @param operations knows which policies have keys that annotations give; null if there are none
     * @param endpoints the names of those that there are
     */
    ConfiguredBuckets(
            RateLimitProperties properties,
            Throttlers throttlers,
            @Nullable RateLimitedOperations operations,
            Supplier<Collection<String>> endpoints,
            FailureListener failures) {
        this.operations = operations;
        this.ofCalls = new RequestKey(List.of(), MissingKey.SHARED, failures, ThrottleListener.NONE);
        int ipv6Prefix = properties.clientIp().ipv6Prefix();
        properties.policies().forEach((name, policy) -> {
            ThrottlePolicy throttled = throttlers.get(name).policy();
            keys.put(name, key(policy, new OverrideReader(policy, throttled, ipv6Prefix).read(), failures));
            written.put(name, new WrittenKey(policy.key(), policy.ignoreCase(), ipv6Prefix, endpoints));
        });
    }

    private static RequestKey key(Policy policy, Overrides overrides, FailureListener failures) {
        return new RequestKey(policy.key(), policy.onMissingKey(), overrides, null, failures, ThrottleListener.NONE);
    }

    /** How many keys and networks of a policy have something else. */
    int overrides(String policy) {
        RequestKey key = keys.get(policy);
        return key == null ? 0 : key.overrides().size();
    }

    @Override
    public @Nullable Charge find(ThrottlePolicy policy, List<String> key, @Nullable String tier) {
        RequestKey requestKey = keys.getOrDefault(policy.name(), ofCalls);
        if (key.isEmpty() && policy.isGlobal()) {
            return requestKey.charge(policy, 1, null, tier);
        }
        String[] texts = texts(policy, key).toArray(String[]::new);
        return requestKey.charge(policy, texts, 1, CurrentRequest.NONE, tier);
    }

    private List<String> texts(ThrottlePolicy policy, List<String> key) {
        boolean ofAnnotation = operations != null && operations.givesKeys(policy.name());
        WrittenKey configured = written.get(policy.name());
        try {
            return configured == null ? asCode(policy, key, ofAnnotation) : configured.read(key);
        } catch (IllegalArgumentException unreadable) {
            if (ofAnnotation && !key.isEmpty()) {
                return key;
            }
            throw unreadable;
        }
    }

    /** Of a policy that code has added, or a limit of an annotation's own: nothing is known of its parts. */
    private static List<String> asCode(ThrottlePolicy policy, List<String> key, boolean anyNumber) {
        if (key.size() != policy.key().size() && !(anyNumber && !key.isEmpty())) {
            throw new IllegalArgumentException(WrittenKey.shape(policy.key(), key.size()));
        }
        return key;
    }
}
