package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/** Reads one part of a key from a request. A bean of this type may be part of a policy's key by its name. Thread-safe. */
@FunctionalInterface
public interface KeyResolver {

    /**
     * The part's text; null or blank where the request has none, and then the policy's rule for that holds. It does too
     * where this throws.
     */
    @Nullable
    String resolve(RequestFacts request);
}
