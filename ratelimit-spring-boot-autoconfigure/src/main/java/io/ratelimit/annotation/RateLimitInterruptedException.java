package io.ratelimit.annotation;

/**
 * Thrown when the thread of a {@link RateLimited} call is interrupted while the call waits for tokens. The call is not
 * made, and its tokens are returned. The thread is marked as interrupted again. No limit has denied the call, so no
 * {@link RateLimited#fallback fallback} is called. If the exception leaves a web request, the response has status 503.
 */
public final class RateLimitInterruptedException extends RuntimeException {

    private static final long serialVersionUID = 1;

    RateLimitInterruptedException(InterruptedException cause) {
        super("the call was interrupted while it waited for tokens", cause);
    }
}
