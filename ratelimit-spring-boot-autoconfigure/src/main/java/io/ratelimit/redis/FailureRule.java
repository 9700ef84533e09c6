package io.ratelimit.redis;

/** What holds for a policy while the backend that has its buckets fails. */
public enum FailureRule {
    /** The same policy, from the memory of this process. */
    LOCAL,
    /** Every call goes ahead. */
    ALLOW,
    /** No call goes ahead. */
    DENY
}
