package io.ratelimit.actuate;

import java.util.Set;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.Show;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Configuration properties of the actuator endpoint ratelimits.
 *
 * @param showValues When to show the texts of keys, which may be names and addresses of users. Hashes are shown otherwise.
 * @param roles Roles of users that see the texts of keys when authorized. Without roles, each authenticated user sees them.
 */
@ConfigurationProperties("management.endpoint.ratelimits")
public record RateLimitsEndpointProperties(
        @DefaultValue("never") Show showValues,
        @DefaultValue Set<String> roles) {

    /** Returns whether a caller sees the texts of keys. */
    public boolean showsKeys(SecurityContext security) {
        return showValues.isShown(security, roles);
    }
}
