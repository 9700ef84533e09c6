package io.ratelimit.failover;

/** The rule of a policy for the time while the backend of its buckets is unavailable. */
public enum FailureRule {
    /** The policy is enforced from the memory of this process. */
    LOCAL,
    /** Every call is allowed. */
    ALLOW,
    /** Every call is denied. */
    DENY
}
