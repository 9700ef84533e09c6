package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/**
 * Reads one part of a key from a request. A policy uses a bean of this type by its name: {@code bean:NAME} in
 * {@code key} or {@code tier}, or {@code bean('NAME')} in an expression, as of a condition or a cost. Implementations must
 * be thread-safe.
 */
@FunctionalInterface
public interface KeyResolver {

    /**
     * Returns the text of the part, or the name of the tier. Without a text for the key, the policy's
     * {@code on-missing-key} applies; without the name of a tier, the policy's own rate. The same holds if the method
     * throws an exception.
     *
     * @return the text; null or blank if the request has none
     */
    @Nullable
    String resolve(RequestFacts request);
}
