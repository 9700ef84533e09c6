package io.ratelimit.annotation;

import org.jspecify.annotations.Nullable;

/** What a {@link RateLimited} says, or where it stands, can't be; the message says what is true, the action what to do. */
public final class InvalidRateLimitedException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final String action;

    InvalidRateLimitedException(String description, String action) {
        this(description, action, null);
    }

    InvalidRateLimitedException(String description, String action, @Nullable Throwable cause) {
        super(description, cause);
        this.action = action;
    }

    /** What to do. */
    public String action() {
        return action;
    }
}
