package io.ratelimit;

/** What happens to a policy beside its decisions, and is worth counting. */
public enum ThrottleEvent {
    /** A call lacked a part of the policy's key, or the part couldn't be told. */
    MISSING_KEY,
    /** A key had to share a bucket with others, for the policy has its most keys already. */
    OVERFLOW,
    /** The backend that has the bucket failed, so that the policy's rule for that decided. */
    BACKEND_FAILURE,
    /** A call that the policy would have covered was free. */
    EXEMPT,
    /** A refusal is answered late, on purpose. */
    DELAYED
}
