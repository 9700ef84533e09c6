package io.ratelimit.autoconfigure;

/** The application can't start as it is configured; says what is true and what to type. */
public final class RateLimitConfigurationException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final String action;

    public RateLimitConfigurationException(String description, String action) {
        super(description);
        this.action = action;
    }

    /** What to type. */
    public String action() {
        return action;
    }
}
