package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.GuaranteedShare;
import io.ratelimit.policy.RateLimitProperties.NamedShare;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.Tier;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * Checks environment variables and system properties: each must set a property of a policy that the application's
 * configuration contains. An environment variable can't contain a dash, so {@code RATELIMIT_POLICIES_PERUSER_RATE} would
 * change {@code per-user} and add {@code peruser}. {@code RATELIMIT_POLICIES_LOGNI_RATE} would add a policy for the whole
 * site, and {@code RATELIMIT_POLICIES_LOGIN_RAET} would do nothing.
 */
record EnvironmentPolicies(Set<String> names, ConfigurableEnvironment environment) {

    private static final Set<String> OUTSIDE =
            Set.of(PolicyNames.ENVIRONMENT, StandardEnvironment.SYSTEM_PROPERTIES_PROPERTY_SOURCE_NAME);

    /**
     * Checks the properties of all sources that are outside the configuration. Mostly there are none, so the names of all
     * properties are collected only when there are some.
     *
     * @throws RateLimitConfigurationException if a property sets nothing of a policy in the configuration
     */
    void check(List<EnumerablePropertySource<?>> sources) {
        for (EnumerablePropertySource<?> source : sources) {
            if (isOutside(source)) {
                MisspeltVariables.warn(source);
                List<String> properties = propertiesOfPolicies(source);
                if (!properties.isEmpty()) {
                    check(properties, source, sources);
                }
            }
        }
    }

    private static List<String> propertiesOfPolicies(EnumerablePropertySource<?> source) {
        String policies = PolicyNames.plain(PolicyNames.POLICIES);
        return Stream.of(source.getPropertyNames())
                .filter(property -> PolicyNames.plain(property).startsWith(policies))
                .toList();
    }

    private void check(List<String> properties, PropertySource<?> source, List<EnumerablePropertySource<?>> sources) {
        List<String> inside = names.stream().filter(this::isInside).sorted().toList();
        Map<String, String> settable =
                Variables.settable(inside, sources.stream().filter(other -> !isOutside(other)));
        for (String property : properties) {
            if (!settable.containsKey(Variables.withoutElement(PolicyNames.plain(property)))) {
                throw outside(property, source, inside, settable);
            }
        }
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
            String property, PropertySource<?> source, List<String> inside, Map<String, String> settable) {
        boolean variable = source.getName().equals(PolicyNames.ENVIRONMENT);
        String kind = variable ? "environment variable" : "system property";
        String plain = PolicyNames.plain(property);
        String meant = Variables.nearest(Variables.withoutElement(plain), settable.keySet());
        return new RateLimitConfigurationException(
                "The " + kind + " '" + property + "' sets no property of a throttle policy in the application's"
                        + " configuration. It is probably misspelt: it would change nothing, or add a policy that limits"
                        + " the whole site.",
                meant == null
                        ? "Correct or remove the " + kind + existing(plain, inside, settable.values())
                        : "Write '" + (variable ? meant.toUpperCase(Locale.ROOT) : settable.get(meant)) + "'.");
    }

    /** Returns what there is in place of a property that is like no other: tiers and shares of its policy, or policies. */
    private static String existing(String plain, List<String> inside, Collection<String> settable) {
        for (String policy : inside) {
            for (String kind : List.of("tiers", "shares")) {
                String owner = PolicyNames.POLICIES + policy + "." + kind + ".";
                if (plain.startsWith(PolicyNames.plain(owner))
                        || plain.startsWith(PolicyNames.plain(owner.replace('-', '_')))) {
                    List<String> entries = settable.stream()
                            .filter(name -> name.startsWith(owner))
                            .map(name -> name.substring(owner.length(), name.lastIndexOf('.')))
                            .distinct()
                            .sorted()
                            .toList();
                    return ". The policy '" + policy + "' has "
                            + (entries.isEmpty() ? "no " + kind : "the " + kind + ": " + String.join(", ", entries))
                            + ".";
                }
            }
        }
        return ", or add the policy to the application's configuration, which has "
                + (inside.isEmpty() ? "no policies." : "the policies: " + String.join(", ", inside) + ".")
                + " To set a value from the environment, use a placeholder in the configuration:"
                + " 'rate: ${MY_RATE:600/1m}'.";
    }

    /** The properties below a policy that a variable may set. */
    private static final class Variables {

        private static final Pattern ENTRY = Pattern.compile("(.+\\.(tiers|shares)\\.[^.]+)\\.[^.]+");
        private static final Pattern OVERRIDE =
                Pattern.compile("overrides[_\\[]\\d+]?_(keys|rate|capacity|in_?flight|mode)");
        private static final Pattern ELEMENT = Pattern.compile("([_\\[]\\d+]?)+$");

        /** Misspelt names with more mistakes are no other name. */
        private static final int MAX_MISTAKES = 2;

        /**
         * Returns the properties of the policies, and of the tiers and shares that the configuration contains, by their
         * names in the form of an environment variable.
         */
        static Map<String, String> settable(List<String> policies, Stream<EnumerablePropertySource<?>> inside) {
            Map<String, String> settable = new HashMap<>();
            for (String policy : policies) {
                addAll(Policy.class, PolicyNames.POLICIES + policy, settable);
                addAll(GuaranteedShare.class, PolicyNames.POLICIES + policy + ".guaranteed", settable);
            }
            inside.flatMap(source -> Stream.of(source.getPropertyNames()))
                    .map(ENTRY::matcher)
                    .filter(Matcher::matches)
                    .forEach(entry -> addAll(
                            entry.group(2).equals("tiers") ? Tier.class : NamedShare.class, entry.group(1), settable));
            return settable;
        }

        /** Adds the names that Spring Boot looks up: without dashes, and with an underscore for each. */
        private static void addAll(Class<?> properties, String owner, Map<String, String> settable) {
            for (String property : PolicyNames.namesOf(properties)) {
                String name = owner + "." + property;
                settable.put(PolicyNames.plain(name), name);
                settable.put(PolicyNames.plain(name.replace('-', '_')), name);
            }
        }

        /** Returns the name that was probably meant; null if none is near. */
        static @Nullable String nearest(String plain, Set<String> settable) {
            return settable.stream()
                    .filter(name -> NearestName.distance(plain, name) <= MAX_MISTAKES)
                    .min(Comparator.<String>comparingInt(name -> NearestName.distance(plain, name))
                            .thenComparing(Comparator.naturalOrder()))
                    .orElse(null);
        }

        /** Returns the property of a policy whose element a property sets. */
        static String withoutElement(String plain) {
            return ELEMENT.matcher(OVERRIDE.matcher(plain).replaceFirst("overrides"))
                    .replaceFirst("");
        }
    }
}
