package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import org.jspecify.annotations.Nullable;

/**
 * Reads a request's own limit, such as that of a customer's contract. A policy uses a bean of this type by its name:
 * {@code limit: bean:NAME}. Each request of the policy calls it and waits for it, so an implementation that reads a
 * database should cache what it reads. Implementations must be thread-safe.
 */
@FunctionalInterface
public interface LimitResolver {

    /**
     * Returns the rate and the capacity of the request's bucket. The bucket stays the one of the request's key: after a
     * change it keeps its tokens, cut to the new capacity. The refill is always the policy's, and with
     * {@code refill: calendar} the period must be the policy's, too. If it isn't, if the method throws an exception, or the capacity is below the least cost of the policy, the policy's limit applies.
     *
     * @param request the facts of the request
     * @return the limit; null for the policy's, or that of the request's tier
     */
    @Nullable
    BucketSpec limit(RequestFacts request);
}
