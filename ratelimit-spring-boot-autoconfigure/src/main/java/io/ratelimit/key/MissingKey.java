package io.ratelimit.key;

/** The treatment of a request that has no text for a part of a policy's key. */
public enum MissingKey {
    /** The client's address becomes the placeholder of the part. */
    CLIENT_IP,
    /** Requests without the part share one placeholder. */
    SHARED,
    /** The policy denies the request. */
    DENY,
    /** The policy doesn't apply to the request. */
    SKIP
}
