package io.ratelimit.autoconfigure;

import static io.ratelimit.autoconfigure.PolicyNames.plain;

import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * Refuses what is set from outside, unless it changes a policy that the application's configuration names. An environment
 * variable can't spell a dash: {@code RATELIMIT_POLICIES_PERUSER_RATE} changes {@code per-user} and adds {@code peruser}
 * beside it; {@code RATELIMIT_POLICIES_LOGNI_RATE} adds a policy for the whole site, and
 * {@code RATELIMIT_POLICIES_LOGIN_RAET} does nothing.
 */
final class OutsidePolicies {

    private static final Set<String> OUTSIDE =
            Set.of(PolicyNames.ENVIRONMENT, StandardEnvironment.SYSTEM_PROPERTIES_PROPERTY_SOURCE_NAME);

    private final Set<String> names;
    private final ConfigurableEnvironment environment;

    /**
     * @param names of the policies as they were bound
     */
    OutsidePolicies(Set<String> names, ConfigurableEnvironment environment) {
        this.names = names;
        this.environment = environment;
    }

    /** Most often nothing is set there, and nothing has to be known. */
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
        String policies = plain(PolicyNames.POLICIES);
        for (String property : source.getPropertyNames()) {
            if (plain(property).startsWith(policies)) {
                properties.add(property);
            }
        }
        return properties;
    }

    private void check(List<String> properties, PropertySource<?> source, List<EnumerablePropertySource<?>> sources) {
        List<String> inside = names.stream().filter(this::isInside).sorted().toList();
        Set<String> known = known(inside);
        known.addAll(Variables.knownOfTiers(sources.stream().filter(other -> !isOutside(other))));
        for (String property : properties) {
            if (!known.contains(Variables.withoutElement(plain(property)))) {
                throw outside(property, source, inside);
            }
        }
    }

    private static Set<String> known(List<String> inside) {
        Set<String> known = new HashSet<>();
        for (String name : inside) {
            for (String property : RateLimitProperties.namesOf(Policy.class)) {
                known.add(plain(PolicyNames.POLICIES + name.replace("-", "") + "." + property.replace("-", "")));
                known.add(plain(PolicyNames.POLICIES + name.replace('-', '.') + "." + property.replace('-', '.')));
            }
        }
        return known;
    }

    private boolean isInside(String name) {
        ConfigurationPropertyName policy = ConfigurationPropertyName.of(PolicyNames.POLICIES + name);
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
        String kind = source.getName().equals(PolicyNames.ENVIRONMENT) ? "environment variable" : "system property";
        return new RateLimitConfigurationException(
                "The " + kind + " '" + property + "' sets no property of a throttle policy that the application's"
                        + " configuration names. Most often that is a misspelling: it would change nothing, or add a"
                        + " policy that limits the whole site.",
                "Correct or remove the " + kind + ", or name the policy in the application's configuration. "
                        + (inside.isEmpty()
                                ? "None is named there."
                                : "Named there: " + String.join(", ", inside) + ".")
                        + " To set a value from the environment, use a placeholder there:"
                        + " 'rate: ${MY_RATE:600/1m}'.");
    }

    /** What a variable may name below a policy. */
    private static final class Variables {

        private static final Pattern TIER = Pattern.compile("(.*_tiers_.+)_(rate|capacity)");
        private static final Pattern OVERRIDE = Pattern.compile("overrides[_\\[]\\d+]?_(keys|rate|capacity|mode)");
        private static final Pattern ELEMENT = Pattern.compile("([_\\[]\\d+]?)+$");

        /** What may be set of the tiers that the application's configuration names. */
        static Set<String> knownOfTiers(Stream<EnumerablePropertySource<?>> inside) {
            return inside.flatMap(source -> Stream.of(source.getPropertyNames()))
                    .map(property -> TIER.matcher(plain(property)))
                    .filter(Matcher::matches)
                    .flatMap(tier -> Stream.of(tier.group(1) + "_rate", tier.group(1) + "_capacity"))
                    .collect(Collectors.toSet());
        }

        /** The property of a policy that a property sets an element of. */
        static String withoutElement(String plain) {
            return ELEMENT.matcher(OVERRIDE.matcher(plain).replaceFirst("overrides"))
                    .replaceFirst("");
        }
    }
}
