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

    /**
     * Notes the exception of a call that was denied or interrupted, in the request that the thread serves. Spring MVC drops
     * the exception if an exception handler throws it.
     */
    default void noteRejectedCall(RuntimeException rejected) {}
}
