package io.ratelimit.policy;

/** The moment of the filter chain at which a policy decides. */
public enum Phase {
    /** Before Spring Security: requests with wrong credentials are counted, too. */
    BEFORE_AUTHENTICATION,
    /** After Spring Security: the user is known. */
    AFTER_AUTHENTICATION
}
