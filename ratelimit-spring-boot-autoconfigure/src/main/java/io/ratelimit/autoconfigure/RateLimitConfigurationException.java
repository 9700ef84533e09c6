package io.ratelimit.autoconfigure;

import org.jspecify.annotations.Nullable;

/** The application can't start as it is configured; says what is true and what to type. */
public final class RateLimitConfigurationException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final String action;
    private final @Nullable String property;

    public RateLimitConfigurationException(String description, String action) {
        this(description, action, null);
    }

    /**
     * @param property the report says where it is set, and what is set below it
     */
    public RateLimitConfigurationException(String description, String action, @Nullable String property) {
        super(description);
        this.action = action;
        this.property = property;
    }

    /** What to type. */
    public String action() {
        return action;
    }

    /** What it is about, if that is a property. */
    public @Nullable String property() {
        return property;
    }
}
