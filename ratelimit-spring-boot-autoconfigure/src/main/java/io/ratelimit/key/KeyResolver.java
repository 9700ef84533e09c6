package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/** Reads one part of a key from a request. */
@FunctionalInterface
public interface KeyResolver {

    /** The part's text; null or blank where the request has none, and then the policy's rule for that holds. */
    @Nullable
    String resolve(RequestFacts request);
}
