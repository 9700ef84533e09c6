package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/** Knows the web request that the calling thread works for. */
@FunctionalInterface
public interface CurrentRequest {

    /** There is none. */
    CurrentRequest NONE = () -> null;

    /** The request's facts; null if the thread works for none. */
    @Nullable
    RequestFacts facts();
}
