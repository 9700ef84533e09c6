package io.ratelimit.key;

/** What holds for a request that lacks a part of a policy's key. */
public enum MissingKey {
    /** The client's address stands in for the part. */
    CLIENT_IP,
    /** All such requests share what stands in for the part. */
    SHARED,
    /** The request is denied. */
    DENY,
    /** The policy doesn't apply to the request. */
    SKIP
}
