package io.ratelimit.annotation;

/**
 * A call of a {@link RateLimited} method was not made, for its thread was interrupted while it waited in line. No limit
 * has refused it, and what it had taken is given back. The thread is marked as interrupted again. Where it leaves a web
 * request, the answer is 503.
 */
public final class RateLimitInterruptedException extends RuntimeException {

    private static final long serialVersionUID = 1;

    RateLimitInterruptedException(InterruptedException cause) {
        super("the call was interrupted while it waited in line", cause);
    }
}
