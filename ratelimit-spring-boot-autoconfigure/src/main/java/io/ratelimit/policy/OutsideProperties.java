package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.GuaranteedShare;
import io.ratelimit.policy.RateLimitProperties.NamedShare;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.Tier;
import java.lang.reflect.Parameter;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
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
 * Checks environment variables and system properties. Each one below {@code ratelimit.policies} must set a property of a policy
 * that the application's configuration contains. An environment variable can't contain a dash, so
 * {@code RATELIMIT_POLICIES_PERUSER_RATE} would change {@code per-user} and add {@code peruser}.
 * {@code RATELIMIT_POLICIES_LOGNI_RATE} would add a policy for the whole site, and {@code RATELIMIT_POLICIES_LOGIN_RAET} would
 * do nothing.
 *
 * <p>Any other one below {@code ratelimit} is only warned of if it sets nothing and its name is close to a property's. Spring
 * Boot ignores unknown names in these sources, and Kubernetes sets {@code RATELIMIT_SERVICE_HOST} for a service
 * {@code ratelimit}.
 */
record OutsideProperties(Set<String> names, ConfigurableEnvironment environment) {

    private static final Log logger = LogFactory.getLog(OutsideProperties.class);

    private static final Set<String> OUTSIDE =
            Set.of(PolicyNames.ENVIRONMENT, StandardEnvironment.SYSTEM_PROPERTIES_PROPERTY_SOURCE_NAME);
    private static final String OURS = RateLimitProperties.PREFIX + "_";
    private static final String POLICIES = "policies";
    private static final Pattern INDEXES = Pattern.compile("([_\\[]\\d+]?)+$");

    /**
     * Checks the properties of all sources that are outside the configuration. Mostly there are none, so the names of all
     * properties are collected only when there are some.
     *
     * @throws RateLimitConfigurationException if a property sets nothing of a policy in the configuration
     */
    void check(List<EnumerablePropertySource<?>> sources) {
        for (EnumerablePropertySource<?> source : sources) {
            if (isOutside(source)) {
                List<String> others = below(OURS, source).stream()
                        .filter(name -> !PolicyNames.plain(name).startsWith(OURS + POLICIES))
                        .toList();
                if (!others.isEmpty()) {
                    warnOfMisspelt(others, source);
                }
                List<String> properties = below(PolicyNames.plain(PolicyNames.POLICIES), source);
                if (!properties.isEmpty()) {
                    check(properties, source, sources);
                }
            }
        }
    }

    private static boolean isOutside(PropertySource<?> source) {
        return OUTSIDE.contains(source.getName());
    }

    /** Returns the names of a source with a beginning, in the form of an environment variable. */
    private static List<String> below(String beginning, EnumerablePropertySource<?> source) {
        return Stream.of(source.getPropertyNames())
                .filter(name -> PolicyNames.plain(name).startsWith(beginning))
                .toList();
    }

    private static void warnOfMisspelt(List<String> names, PropertySource<?> source) {
        Map<String, String> properties = propertiesOutsidePolicies();
        for (String name : names) {
            String meant = meant(PolicyNames.plain(name).substring(OURS.length()), properties);
            if (meant != null) {
                logger.warn("The " + kind(source) + " '" + name + "' sets no property. It was probably meant to be '"
                        + (isVariable(source)
                                ? (OURS + PolicyNames.plain(meant)).toUpperCase(Locale.ROOT)
                                : RateLimitProperties.PREFIX + "." + meant)
                        + "'. Correct or remove it");
            }
        }
    }

    private static boolean isVariable(PropertySource<?> source) {
        return source.getName().equals(PolicyNames.ENVIRONMENT);
    }

    private static String kind(PropertySource<?> source) {
        return isVariable(source) ? "environment variable" : "system property";
    }

    /** Returns the properties by their letters and digits. */
    private static Map<String, String> propertiesOutsidePolicies() {
        Map<String, String> properties = new TreeMap<>();
        for (Parameter parameter : RateLimitProperties.class.getDeclaredConstructors()[0].getParameters()) {
            String name = PolicyNames.nameOf(parameter);
            Stream<String> names = parameter.getType().isRecord()
                    ? PolicyNames.namesOf(parameter.getType()).stream().map(inner -> name + "." + inner)
                    : Stream.of(name).filter(other -> !other.equals(POLICIES));
            names.forEach(property -> properties.put(PolicyNames.plain(property).replace("_", ""), property));
        }
        return properties;
    }

    /** Returns the property that was probably meant; null if the name sets one, or if none is near. */
    private static @Nullable String meant(String name, Map<String, String> properties) {
        String whole = withoutIndexes(name);
        if (properties.values().stream().anyMatch(property -> lookedUp(property).contains(whole))) {
            return null;
        }
        int head = whole.indexOf('_');
        if (head > 0 && NearestName.of(whole.substring(0, head), List.of(POLICIES)) != null) {
            return POLICIES + ".…";
        }
        String nearest = NearestName.of(whole.replace("_", ""), properties.keySet());
        return nearest == null ? null : properties.get(nearest);
    }

    private static String withoutIndexes(String plain) {
        return INDEXES.matcher(plain).replaceFirst("");
    }

    /** Returns the names by which Spring Boot looks a property up: without dashes, and with an underscore for each. */
    private static List<String> lookedUp(String property) {
        return List.of(PolicyNames.plain(property), PolicyNames.plain(property.replace('-', '_')));
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

    private static RateLimitConfigurationException outside(
            String property, PropertySource<?> source, List<String> inside, Map<String, String> settable) {
        String kind = kind(source);
        String plain = PolicyNames.plain(property);
        String meant = NearestName.of(Variables.withoutElement(plain), settable.keySet(), 2)
                .orElse(null);
        return new RateLimitConfigurationException(
                "The " + kind + " '" + property + "' sets no property of a throttle policy in the application's"
                        + " configuration. It is probably misspelt: it would change nothing, or add a policy that limits"
                        + " the whole site.",
                meant == null
                        ? "Correct or remove the " + kind + existing(plain, inside, settable.values())
                        : "Write '" + (isVariable(source) ? meant.toUpperCase(Locale.ROOT) : settable.get(meant))
                                + "'.");
    }

    /** Returns what there is in place of a property that is like no other: tiers and shares of its policy, or policies. */
    private static String existing(String plain, List<String> inside, Collection<String> settable) {
        for (String policy : inside) {
            for (String kind : List.of("tiers", "shares")) {
                String owner = PolicyNames.POLICIES + policy + "." + kind + ".";
                if (lookedUp(owner).stream().anyMatch(plain::startsWith)) {
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

        private static void addAll(Class<?> properties, String owner, Map<String, String> settable) {
            for (String property : PolicyNames.namesOf(properties)) {
                String name = owner + "." + property;
                lookedUp(name).forEach(variable -> settable.put(variable, name));
            }
        }

        /** Returns the property of a policy whose element a property sets. */
        static String withoutElement(String plain) {
            return withoutIndexes(OVERRIDE.matcher(plain).replaceFirst("overrides"));
        }
    }
}
