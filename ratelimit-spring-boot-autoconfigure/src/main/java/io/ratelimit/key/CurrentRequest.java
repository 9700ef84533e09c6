package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/** Access to the web request that the calling thread serves. */
@FunctionalInterface
public interface CurrentRequest {

    /** An access that never finds a request. */
    CurrentRequest NONE = () -> null;

    /** Returns the facts of the request; null if the thread serves none. */
    @Nullable
    RequestFacts facts();
}
