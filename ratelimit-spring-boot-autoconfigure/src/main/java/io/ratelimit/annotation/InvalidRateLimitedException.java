package io.ratelimit.annotation;

import org.jspecify.annotations.Nullable;

/**
 * Thrown at the start of the application when a {@link RateLimited} has a mistake, or can't be enforced. The message
 * describes the mistake, and {@link #action()} the correction.
 */
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

    /** Returns the text that describes how to correct the mistake. */
    public String action() {
        return action;
    }
}
