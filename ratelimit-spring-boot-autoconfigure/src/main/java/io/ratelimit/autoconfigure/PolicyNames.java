package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * Refuses what binding lets pass. It drops the characters of a name that it doesn't know, and the fraction of a number.
 */
final class PolicyNames {

    static final String ENVIRONMENT = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;
    static final String POLICIES = RateLimitProperties.property("");

    private PolicyNames() {}

    /**
     * @param names of the policies as they were bound
     */
    static void check(Set<String> names, ConfigurableEnvironment environment) {
        List<EnumerablePropertySource<?>> sources = sources(environment);
        for (EnumerablePropertySource<?> source : sources) {
            if (!source.getName().equals(ENVIRONMENT)) {
                checkAsWritten(source);
            }
        }
        for (String name : names) {
            checkName(name, POLICIES.substring(0, POLICIES.length() - 1) + "[" + name + "]");
        }
        checkTwins(names);
        new OutsidePolicies(names, environment).check(sources);
    }

    private static List<EnumerablePropertySource<?>> sources(ConfigurableEnvironment environment) {
        List<EnumerablePropertySource<?>> sources = new ArrayList<>();
        for (PropertySource<?> source : environment.getPropertySources()) {
            if (source instanceof EnumerablePropertySource<?> enumerable) {
                sources.add(enumerable);
            }
        }
        return sources;
    }

    private static void checkAsWritten(EnumerablePropertySource<?> source) {
        for (String property : source.getPropertyNames()) {
            String name = property.startsWith(POLICIES) ? nameIn(property) : "";
            if (!name.isEmpty()) {
                checkName(name, POLICIES + name);
                if (source.getProperty(property) instanceof Double number) {
                    throw new InvalidConfigurationPropertyValueException(
                            property, number, "It must be a whole number, but was " + number + ".");
                }
            }
        }
    }

    private static String nameIn(String property) {
        int end = POLICIES.length();
        while (end < property.length() && property.charAt(end) != '.' && property.charAt(end) != '[') {
            end++;
        }
        return property.substring(POLICIES.length(), end);
    }

    private static void checkName(String name, String property) {
        if (!ThrottlePolicy.isName(name)) {
            throw new RateLimitConfigurationException(
                    "'" + name + "' can't be the name of a throttle policy: a name has lower-case letters, digits and"
                            + " dashes, 64 at most, and begins with a letter or a digit.",
                    "Rename the policy, for example to '" + POLICIES + "per-user'.",
                    property);
        }
    }

    private static void checkTwins(Set<String> names) {
        Map<String, String> seen = new HashMap<>();
        for (String name : new TreeSet<>(names)) {
            String twin = seen.put(name.replace("-", ""), name);
            if (twin != null) {
                throw new RateLimitConfigurationException(
                        "The throttle policies '" + twin + "' and '" + name + "' have the same name but for dashes. An"
                                + " environment variable can't spell a dash: it changes one policy and adds another.",
                        "Remove or rename one of them. To set a value from the environment, use a placeholder in the"
                                + " application's configuration: 'rate: ${MY_RATE:600/1m}'.",
                        POLICIES + name);
            }
        }
    }

    /** Whether a property, in any spelling, is this one or below it. */
    static boolean isBelow(String property, String written) {
        String below = plain(written);
        String above = plain(property);
        return below.equals(above) || below.startsWith(above + "_") || below.startsWith(above + "[");
    }

    /** A property's name in the form of an environment variable. */
    static String plain(String property) {
        return property.toLowerCase(Locale.ROOT).replace("-", "").replace('.', '_');
    }
}
