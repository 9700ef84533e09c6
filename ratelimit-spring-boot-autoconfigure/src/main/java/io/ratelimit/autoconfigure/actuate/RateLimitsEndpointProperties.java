package io.ratelimit.autoconfigure.actuate;

import java.util.Set;
import org.springframework.boot.actuate.endpoint.Show;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Configuration properties of the actuator endpoint ratelimits.
 *
 * @param showValues when to show the texts of keys, which may be names and addresses of users; otherwise their hashes
 * @param roles of users that texts are shown to when authorized; all that are authenticated if there is none
 */
@ConfigurationProperties("management.endpoint.ratelimits")
public record RateLimitsEndpointProperties(
        @DefaultValue("never") Show showValues,
        @DefaultValue Set<String> roles) {}
