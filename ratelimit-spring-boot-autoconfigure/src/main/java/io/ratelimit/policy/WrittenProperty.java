package io.ratelimit.policy;

import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.origin.PropertySourceOrigin;

/**
 * The name of a property as the application wrote it. To Spring Boot, {@code rate-limit} and {@code rateLimit} are the prefix
 * {@code ratelimit} too, so properties of the application's own limiter may become properties of this library.
 */
final class WrittenProperty {

    static final String ONE_PREFIX = "To Spring Boot, 'rate-limit', 'rateLimit' and 'ratelimit' are one prefix: ";

    private WrittenProperty() {}

    static String nameOf(ConfigurationProperty property) {
        return property.getOrigin() instanceof PropertySourceOrigin origin
                ? origin.getPropertyName()
                : property.getName().toString();
    }

    /** Returns whether the name begins with the prefix in another spelling than this library's documentation. */
    static boolean hasOtherPrefix(ConfigurationProperty property) {
        String name = nameOf(property);
        return !name.startsWith(RateLimitProperties.PREFIX) && !name.startsWith("RATELIMIT_");
    }
}
