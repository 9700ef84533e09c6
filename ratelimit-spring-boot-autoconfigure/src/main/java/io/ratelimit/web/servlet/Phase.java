package io.ratelimit.web.servlet;

/** Where a policy is asked: what it needs to know decides that. */
public enum Phase {
    /** Before Spring Security: also requests whose credentials are wrong are counted. */
    BEFORE_AUTHENTICATION,
    /** After Spring Security: the user is known. */
    AFTER_AUTHENTICATION
}
