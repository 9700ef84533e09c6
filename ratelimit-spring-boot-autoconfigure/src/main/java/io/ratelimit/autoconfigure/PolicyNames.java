package io.ratelimit.autoconfigure;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.core.env.Environment;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * Refuses policies that nobody meant. An environment variable can't spell a dash: {@code RATELIMIT_POLICIES_PERUSER_RATE}
 * changes {@code per-user} and adds {@code peruser} beside it, and a slip of the keyboard adds a policy for the whole
 * site.
 */
final class PolicyNames {

    private static final Set<String> OUTSIDE = Set.of(
            StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
            StandardEnvironment.SYSTEM_PROPERTIES_PROPERTY_SOURCE_NAME);

    private PolicyNames() {}

    static void check(Set<String> names, Environment environment) {
        Map<String, String> seen = new HashMap<>();
        for (String name : names) {
            String twin = seen.put(name.replace("-", "").toLowerCase(Locale.ROOT), name);
            if (twin != null) {
                throw twins(twin, name);
            }
        }
        for (String name : names) {
            if (isFromOutsideOnly(name, environment)) {
                throw outsideOnly(name);
            }
        }
    }

    /** Whether environment variables or system properties name the policy, and no configuration of the application does. */
    private static boolean isFromOutsideOnly(String name, Environment environment) {
        ConfigurationPropertyName policy = ConfigurationPropertyName.adapt(RateLimitProperties.property(name), '.');
        boolean outside = false;
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            if (source.containsDescendantOf(policy) == ConfigurationPropertyState.PRESENT) {
                if (!isOutside(source)) {
                    return false;
                }
                outside = true;
            }
        }
        return outside;
    }

    private static boolean isOutside(ConfigurationPropertySource source) {
        return source.getUnderlyingSource() instanceof PropertySource<?> underlying
                && OUTSIDE.contains(underlying.getName());
    }

    private static RateLimitConfigurationException twins(String one, String other) {
        return new RateLimitConfigurationException(
                "The throttle policies '" + one + "' and '" + other + "' have the same name but for dashes and case. An"
                        + " environment variable such as '" + variable(one)
                        + "' changes one policy and adds the other.",
                "Remove or rename one of them. To set a value from the environment, use a placeholder in the"
                        + " application's configuration: 'rate: ${MY_RATE:600/1m}'.");
    }

    private static RateLimitConfigurationException outsideOnly(String name) {
        return new RateLimitConfigurationException(
                "The throttle policy '" + name + "' is named only by an environment variable or a system property, such"
                        + " as '" + variable(name) + "'. Most often that is a misspelt name of another policy, and"
                        + " would limit the whole site.",
                "Define '" + RateLimitProperties.property(name) + ".rate' in the application's configuration, or"
                        + " correct the variable. To set a value of another policy from the environment, use a"
                        + " placeholder there: 'rate: ${MY_RATE:600/1m}'.");
    }

    private static String variable(String name) {
        return (RateLimitProperties.property(name.replace("-", "")) + ".rate")
                .replace('.', '_')
                .toUpperCase(Locale.ROOT);
    }
}
