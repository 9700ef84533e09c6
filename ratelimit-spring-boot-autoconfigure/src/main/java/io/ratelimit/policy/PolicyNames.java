package io.ratelimit.policy;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
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

    private static final String ENVIRONMENT = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;
    static final String POLICIES = RateLimitProperties.property("");

    static final String ONE_PREFIX = "To Spring Boot, 'rate-limit', 'rateLimit' and 'ratelimit' are one prefix: ";

    private PolicyNames() {}

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
     * Checks the names and the whole numbers of all policies.
     *
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
        checkTwins(names);
        new EnvironmentPolicies(names, environment).check(sources);
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
            String name = property.startsWith(POLICIES) ? nameIn(property) : "";
            if (!name.isEmpty()) {
                checkName(name, POLICIES + name);
                if (source.getProperty(property) instanceof Double number) {
                    throw new InvalidConfigurationPropertyValueException(
                            property, number, leaf(property) + " must be a whole number, but was " + number);
                }
            }
        }
    }

    private static String leaf(String property) {
        return property.substring(property.lastIndexOf('.') + 1);
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
                    "'" + name + "' can't be the name of a throttle policy: a name has at most 64 lower-case letters,"
                            + " digits and dashes, and begins with a letter or a digit.",
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
                        "The throttle policies '" + twin + "' and '" + name
                                + "' have the same name except for dashes. An"
                                + " environment variable can't contain a dash: it would change one policy and add the"
                                + " other.",
                        "Remove or rename one of them. To set a value from the environment, use a placeholder in the"
                                + " application's configuration: 'rate: ${MY_RATE:600/1m}'.",
                        POLICIES + name);
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

    /**
     * Checks environment variables and system properties: each must set a property of a policy that the application's
     * configuration contains. An environment variable can't contain a dash, so {@code RATELIMIT_POLICIES_PERUSER_RATE} would
     * change {@code per-user} and add {@code peruser}. {@code RATELIMIT_POLICIES_LOGNI_RATE} would add a policy for the whole
     * site, and {@code RATELIMIT_POLICIES_LOGIN_RAET} would do nothing.
     */
    private record EnvironmentPolicies(Set<String> names, ConfigurableEnvironment environment) {

        private static final Set<String> OUTSIDE =
                Set.of(ENVIRONMENT, StandardEnvironment.SYSTEM_PROPERTIES_PROPERTY_SOURCE_NAME);

        /**
         * Checks the properties of all sources that are outside the configuration. Mostly there are none, so the names of all
         * properties are collected only when there are some.
         *
         * @throws RateLimitConfigurationException if a property sets nothing of a policy in the configuration
         */
        void check(List<EnumerablePropertySource<?>> sources) {
            for (EnumerablePropertySource<?> source : sources) {
                List<String> properties = isOutside(source) ? propertiesOfPolicies(source) : List.of();
                if (!properties.isEmpty()) {
                    check(properties, source, sources);
                }
            }
        }

        private static List<String> propertiesOfPolicies(EnumerablePropertySource<?> source) {
            List<String> properties = new ArrayList<>();
            String policies = plain(POLICIES);
            for (String property : source.getPropertyNames()) {
                if (plain(property).startsWith(policies)) {
                    properties.add(property);
                }
            }
            return properties;
        }

        private void check(
                List<String> properties, PropertySource<?> source, List<EnumerablePropertySource<?>> sources) {
            List<String> inside = names.stream().filter(this::isInside).sorted().toList();
            Set<String> settable = settable(inside);
            settable.addAll(Variables.settableOfTiers(sources.stream().filter(other -> !isOutside(other))));
            for (String property : properties) {
                if (!settable.contains(Variables.withoutElement(plain(property)))) {
                    throw outside(property, source, inside);
                }
            }
        }

        private static Set<String> settable(List<String> inside) {
            Set<String> settable = new HashSet<>();
            for (String name : inside) {
                for (String property : RateLimitProperties.namesOf(Policy.class)) {
                    settable.add(plain(POLICIES + name.replace("-", "") + "." + property.replace("-", "")));
                    settable.add(plain(POLICIES + name.replace('-', '.') + "." + property.replace('-', '.')));
                }
            }
            return settable;
        }

        private boolean isInside(String name) {
            ConfigurationPropertyName policy = ConfigurationPropertyName.of(POLICIES + name);
            return StreamSupport.stream(
                            ConfigurationPropertySources.get(environment).spliterator(), false)
                    .filter(source -> !isOutside(source))
                    .anyMatch(source -> source.containsDescendantOf(policy) == ConfigurationPropertyState.PRESENT
                            || source.getConfigurationProperty(policy) != null);
        }

        private static boolean isOutside(ConfigurationPropertySource source) {
            return source.getUnderlyingSource() instanceof PropertySource<?> underlying && isOutside(underlying);
        }

        private static boolean isOutside(PropertySource<?> source) {
            return OUTSIDE.contains(source.getName());
        }

        private static RateLimitConfigurationException outside(
                String property, PropertySource<?> source, List<String> inside) {
            String kind = source.getName().equals(ENVIRONMENT) ? "environment variable" : "system property";
            return new RateLimitConfigurationException(
                    "The " + kind + " '" + property + "' sets no property of a throttle policy in the application's"
                            + " configuration. It is probably misspelt: it would change nothing, or add a policy that limits"
                            + " the whole site.",
                    "Correct or remove the " + kind + ", or add the policy to the application's configuration. "
                            + (inside.isEmpty()
                                    ? "It contains no policies."
                                    : "It contains the policies: " + String.join(", ", inside) + ".")
                            + " To set a value from the environment, use a placeholder in the configuration:"
                            + " 'rate: ${MY_RATE:600/1m}'.");
        }

        /** The properties below a policy that a variable may set. */
        private static final class Variables {

            private static final Pattern TIER = Pattern.compile("(.*_tiers_.+)_(rate|capacity|inflight)");
            private static final Pattern OVERRIDE =
                    Pattern.compile("overrides[_\\[]\\d+]?_(keys|rate|capacity|inflight|mode)");
            private static final Pattern ELEMENT = Pattern.compile("([_\\[]\\d+]?)+$");

            /** Returns the properties of the tiers in the application's configuration. */
            static Set<String> settableOfTiers(Stream<EnumerablePropertySource<?>> inside) {
                return inside.flatMap(source -> Stream.of(source.getPropertyNames()))
                        .map(property -> TIER.matcher(plain(property)))
                        .filter(Matcher::matches)
                        .flatMap(tier ->
                                Stream.of("_rate", "_capacity", "_inflight").map(limit -> tier.group(1) + limit))
                        .collect(Collectors.toSet());
            }

            /** Returns the property of a policy whose element a property sets. */
            static String withoutElement(String plain) {
                return ELEMENT.matcher(OVERRIDE.matcher(plain).replaceFirst("overrides"))
                        .replaceFirst("");
            }
        }
    }
}
