package io.ratelimit.web.servlet;

/** The position of a policy in the filter chain. It depends on the facts that the policy needs. */
public enum Phase {
    /** Before Spring Security: requests with wrong credentials are counted, too. */
    BEFORE_AUTHENTICATION,
    /** After Spring Security: the user is known. */
    AFTER_AUTHENTICATION
}
