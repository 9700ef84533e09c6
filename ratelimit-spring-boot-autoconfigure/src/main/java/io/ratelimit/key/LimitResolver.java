package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import org.jspecify.annotations.Nullable;

/**
 * Reads a request's own limit, such as that of a customer's contract. A policy uses a bean of this type by its name:
 * {@code limit: bean:NAME}. The bean is called for each request of the policy that no override covers, on the request's
 * thread, so an implementation that reads a database should cache what it reads. Implementations must be thread-safe.
 */
@FunctionalInterface
public interface LimitResolver {

    /**
     * Returns the rate and the capacity of the request's bucket. The request's key still selects the bucket: after a
     * change the bucket keeps its tokens, cut to the new capacity. The refill is always that of the policy. A limit may
     * also have, or only have, a number of requests in flight; what it lacks is the policy's.
     *
     * <p>The policy's limit applies instead if the method throws an exception, if the capacity is below the least cost
     * of the policy, or if a policy with {@code refill: calendar} has another period.
     *
     * @return the limit; null for the limit of the policy, or of the request's tier
     */
    @Nullable
    BucketSpec limit(RequestFacts request);
}
