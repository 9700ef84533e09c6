package io.ratelimit.autoconfigure.actuate;

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
record RateLimitsEndpointProperties(
        @DefaultValue("never") Show showValues,
        @DefaultValue Set<String> roles) {

    boolean showsKeys(SecurityContext security) {
        return showValues.isShown(security, roles);
    }
}
