package io.ratelimit.policy;

import java.util.Collection;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A mistake in the configuration or an annotation that stops the start. The message states the mistake, the action what to
 * type.
 */
public final class RateLimitConfigurationException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final String action;
    private final @Nullable String property;

    public RateLimitConfigurationException(String description, String action) {
        this(description, action, null);
    }

    /** @param property the property whose locations, and those of the properties below it, the report lists */
    public RateLimitConfigurationException(String description, String action, @Nullable String property) {
        super(description);
        this.action = action;
        this.property = property;
    }

    /** Returns the name that a typing error may have made of another. */
    public static Optional<String> nearest(String name, Collection<String> names) {
        return NearestName.of(name, names, 3);
    }

    public String action() {
        return action;
    }

    /** Returns the property that the mistake is in, if there is one. */
    public @Nullable String property() {
        return property;
    }
}
