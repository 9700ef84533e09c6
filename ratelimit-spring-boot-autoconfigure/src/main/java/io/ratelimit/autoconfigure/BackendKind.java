package io.ratelimit.autoconfigure;

/** Where buckets may be. */
public enum BackendKind {
    /** In the memory of each instance. */
    LOCAL,
    /** In Redis, shared by all instances. */
    REDIS
}
