package io.ratelimit.actuate;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * One bucket.
 *
 * @param mode what holds for its key: enforce, shadow or off
 * @param overridden whether the key is one of the policy's overrides
 * @param key whose it is; null where the policy is off for the key, or global
 * @param limit with what is in the bucket; null likewise
 * @param tiers in which the key has other buckets, to be asked for one by one
 * @param backend where the bucket is, if not in this process
 */
public record BucketView(
        String policy,
        String mode,
        boolean overridden,
        @Nullable KeyView key,
        @Nullable LimitView limit,
        List<String> tiers,
        @Nullable BackendView backend)
        implements OperationResponseBody {}
