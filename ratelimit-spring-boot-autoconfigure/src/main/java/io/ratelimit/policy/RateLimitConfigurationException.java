package io.ratelimit.policy;

import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A mistake in the configuration or an annotation that stops the start. The message states the mistake, the action what to
 * type.
 */
public final class RateLimitConfigurationException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private static final int MAX_DISTANCE = 3;

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
        return names.stream()
                .filter(other -> NearestName.distance(name, other) <= Math.min(MAX_DISTANCE, other.length() - 1))
                .min(Comparator.<String>comparingInt(other -> NearestName.distance(name, other))
                        .thenComparing(Comparator.naturalOrder()));
    }

    public String action() {
        return action;
    }

    /** Returns the property that the mistake is in, if there is one. */
    public @Nullable String property() {
        return property;
    }
}
