package io.ratelimit;

import org.jspecify.annotations.Nullable;

/**
 * The part of a limit with {@linkplain Shares guaranteed shares} that one call may use.
 *
 * @param key the key of the lane; empty without a lane
 * @param guaranteed the spec of the call's lane, which serves the call if too few tokens would be left; null without a lane
 * @param leave the tokens that the pool must have after the call, unless the lane serves it
 * @param lanes the most lanes of the policy at a time
 */
public record Share(String key, @Nullable BucketSpec guaranteed, long leave, int lanes) {

    /** Returns what a call without a lane may use. */
    Share withoutLane() {
        return new Share("", null, leave, lanes);
    }

    /** Leaves out the key, which may come from a client and must not get into a log. */
    @Override
    public String toString() {
        return "Share[guaranteed=" + guaranteed + ", leave=" + leave + "]";
    }
}
