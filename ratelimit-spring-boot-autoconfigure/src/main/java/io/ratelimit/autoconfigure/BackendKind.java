package io.ratelimit.autoconfigure;

/** Locations of buckets. */
public enum BackendKind {
    /** The memory of each instance. */
    LOCAL,
    /** Redis, shared by all instances. */
    REDIS
}
