package io.ratelimit.policy;

import io.ratelimit.ThrottlePolicy;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.bind.Name;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.origin.PropertySourceOrigin;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * The names of properties as they are written, and the checks of those of policies. Binding drops unknown characters of a
 * name, and the fraction of a number.
 */
final class PolicyNames {

    static final String ENVIRONMENT = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;
    static final String POLICIES = RateLimitProperties.property("");

    static final String ONE_PREFIX = "To Spring Boot, 'rate-limit', 'rateLimit' and 'ratelimit' are one prefix: ";

    private static final Pattern END_OF_NAME = Pattern.compile("[.\\[]");

    private PolicyNames() {}

    /** Returns the names of the properties that a record binds. */
    static List<String> namesOf(Class<?> properties) {
        return Stream.of(properties.getDeclaredConstructors()[0].getParameters())
                .map(PolicyNames::nameOf)
                .toList();
    }

    static String nameOf(Parameter parameter) {
        Name name = parameter.getAnnotation(Name.class);
        return name == null ? DataObjectPropertyName.toDashedForm(parameter.getName()) : name.value();
    }

    /** Returns the name of a property as the application wrote it. */
    static String written(ConfigurationProperty property) {
        return property.getOrigin() instanceof PropertySourceOrigin origin
                ? origin.getPropertyName()
                : property.getName().toString();
    }

    /**
     * Returns whether a name is written with another spelling of the prefix than this library's documentation. To Spring
     * Boot, {@code rate-limit} and {@code rateLimit} are the prefix {@code ratelimit} too, so properties of the
     * application's own limiter may become properties of this library.
     */
    static boolean hasOtherPrefix(ConfigurationProperty property) {
        String name = written(property);
        return !name.startsWith(RateLimitProperties.PREFIX) && !name.startsWith("RATELIMIT_");
    }

    /**
     * @param names the names of the policies after binding
     * @throws RateLimitConfigurationException if a name is invalid, or equal to another without dashes, or only set from
     *     outside
     * @throws InvalidConfigurationPropertyValueException if a number has a fraction
     */
    static void check(Set<String> names, ConfigurableEnvironment environment) {
        List<EnumerablePropertySource<?>> sources = sources(environment);
        for (EnumerablePropertySource<?> source : sources) {
            if (!source.getName().equals(ENVIRONMENT)) {
                checkSource(source);
            }
        }
        for (String name : names) {
            checkName(name, POLICIES.substring(0, POLICIES.length() - 1) + "[" + name + "]");
        }
        checkTwins("policy", "throttle policies", POLICIES, names);
        new OutsideProperties(names, environment).check(sources);
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

    private static void checkSource(EnumerablePropertySource<?> source) {
        for (String property : source.getPropertyNames()) {
            String name =
                    property.startsWith(POLICIES) ? END_OF_NAME.split(property.substring(POLICIES.length()), 2)[0] : "";
            if (!name.isEmpty()) {
                checkName(name, POLICIES + name);
                if (source.getProperty(property) instanceof Double number) {
                    String leaf = property.substring(property.lastIndexOf('.') + 1);
                    throw new InvalidConfigurationPropertyValueException(
                            property, number, leaf + " must be a whole number, but was " + number);
                }
            }
        }
    }

    private static void checkName(String name, String property) {
        checkName("throttle policy", name, "Rename the policy, for example to '" + POLICIES + "per-user'.", property);
    }

    static void checkName(String kind, String name, String action, String property) {
        if (!ThrottlePolicy.isName(name)) {
            throw new RateLimitConfigurationException(
                    "'" + name + "' can't be the name of a " + kind
                            + ": a name has at most 64 lower-case letters, digits"
                            + " and dashes, and begins with a letter or a digit.",
                    action,
                    property);
        }
    }

    /**
     * Checks that environment variables can tell names apart.
     *
     * @param kind the noun for what has the names, such as "policy"
     * @param kinds the plural
     * @param property the property that contains the names
     * @throws RateLimitConfigurationException if two names are equal without their dashes
     */
    static void checkTwins(String kind, String kinds, String property, Set<String> names) {
        Map<String, String> seen = new HashMap<>();
        for (String name : new TreeSet<>(names)) {
            String twin = seen.put(name.replace("-", ""), name);
            if (twin != null) {
                throw new RateLimitConfigurationException(
                        "The " + kinds + " '" + twin + "' and '" + name
                                + "' have the same name except for dashes. An environment variable can't contain a dash: it"
                                + " would change one " + kind + " and add the other.",
                        "Remove or rename one of them. To set a value from the environment, use a placeholder in the"
                                + " application's configuration: 'rate: ${MY_RATE:600/1m}'.",
                        property + name);
            }
        }
    }

    /** Returns whether a property, in any spelling, is equal to another or below it. */
    static boolean isBelow(String property, String written) {
        String below = plain(written);
        String above = plain(property);
        return below.equals(above) || below.startsWith(above + "_") || below.startsWith(above + "[");
    }

    /** Returns the name of a property in the form of an environment variable. */
    static String plain(String property) {
        return property.toLowerCase(Locale.ROOT).replace("-", "").replace('.', '_');
    }
}
