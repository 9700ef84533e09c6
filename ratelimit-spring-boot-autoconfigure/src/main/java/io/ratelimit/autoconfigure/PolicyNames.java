package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
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
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * Refuses what binding lets pass. It drops the characters of a name that it doesn't know, and the fraction of a number.
 * An environment variable can't spell a dash: {@code RATELIMIT_POLICIES_PERUSER_RATE} changes {@code per-user} and adds
 * {@code peruser} beside it; {@code RATELIMIT_POLICIES_LOGNI_RATE} adds a policy for the whole site, and
 * {@code RATELIMIT_POLICIES_LOGIN_RAET} does nothing.
 */
final class PolicyNames {

    private static final String ENVIRONMENT = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;
    private static final Set<String> OUTSIDE =
            Set.of(ENVIRONMENT, StandardEnvironment.SYSTEM_PROPERTIES_PROPERTY_SOURCE_NAME);

    private static final String POLICIES = RateLimitProperties.property("");
    private static final Pattern NAMED = Pattern.compile(Pattern.quote(POLICIES) + "([^.\\[]+).*");

    private static final Pattern TIER = Pattern.compile("(.*_tiers_.+)_(rate|capacity)");
    private static final Pattern OVERRIDE = Pattern.compile("overrides[_\\[]\\d+]?_(keys|rate|capacity|mode)");
    private static final Pattern ELEMENT = Pattern.compile("([_\\[]\\d+]?)+$");

    private final Set<String> names;
    private final ConfigurableEnvironment environment;

    private PolicyNames(Set<String> names, ConfigurableEnvironment environment) {
        this.names = names;
        this.environment = environment;
    }

    /**
     * @param names of the policies as they were bound
     */
    static void check(Set<String> names, ConfigurableEnvironment environment) {
        PolicyNames policies = new PolicyNames(names, environment);
        policies.sources()
                .filter(source -> !source.getName().equals(ENVIRONMENT))
                .forEach(PolicyNames::checkAsWritten);
        names.forEach(name -> checkName(name, POLICIES.substring(0, POLICIES.length() - 1) + "[" + name + "]"));
        policies.checkTwins();
        policies.checkOutside();
    }

    private Stream<EnumerablePropertySource<?>> sources() {
        return environment.getPropertySources().stream()
                .filter(EnumerablePropertySource.class::isInstance)
                .map(source -> (EnumerablePropertySource<?>) source);
    }

    private static void checkAsWritten(EnumerablePropertySource<?> source) {
        for (String property : source.getPropertyNames()) {
            Matcher named = NAMED.matcher(property);
            if (named.matches()) {
                checkName(named.group(1), POLICIES + named.group(1));
                if (source.getProperty(property) instanceof Double number) {
                    throw new InvalidConfigurationPropertyValueException(
                            property, number, "It must be a whole number, but was " + number + ".");
                }
            }
        }
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

    private void checkTwins() {
        Map<String, String> seen = new HashMap<>();
        for (String name : names.stream().sorted().toList()) {
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

    /** What is set from outside must change a policy that the application's configuration names. */
    private void checkOutside() {
        Set<String> known = new HashSet<>();
        List<String> inside = names.stream().filter(this::isInside).sorted().toList();
        for (String name : inside) {
            for (String property : RateLimitProperties.namesOf(Policy.class)) {
                known.add(plain(POLICIES + name.replace("-", "") + "." + property.replace("-", "")));
                known.add(plain(POLICIES + name.replace('-', '.') + "." + property.replace('-', '.')));
            }
        }
        known.addAll(knownOfTiers());
        sources().filter(source -> OUTSIDE.contains(source.getName())).forEach(source -> Stream.of(
                        source.getPropertyNames())
                .filter(property -> plain(property).startsWith(plain(POLICIES)))
                .filter(property -> !known.contains(withoutElement(plain(property))))
                .findFirst()
                .ifPresent(property -> {
                    throw outside(property, source, inside);
                }));
    }

    /** What may be set of the tiers that the application's configuration names. */
    private Set<String> knownOfTiers() {
        return sources()
                .filter(source -> !OUTSIDE.contains(source.getName()))
                .flatMap(source -> Stream.of(source.getPropertyNames()))
                .map(property -> TIER.matcher(plain(property)))
                .filter(Matcher::matches)
                .flatMap(tier -> Stream.of(tier.group(1) + "_rate", tier.group(1) + "_capacity"))
                .collect(Collectors.toSet());
    }

    /** The property of a policy that a property sets an element of. */
    private static String withoutElement(String plain) {
        return ELEMENT.matcher(OVERRIDE.matcher(plain).replaceFirst("overrides"))
                .replaceFirst("");
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
        return source.getUnderlyingSource() instanceof PropertySource<?> underlying
                && OUTSIDE.contains(underlying.getName());
    }

    /** Whether a property, in any spelling, is this one or below it. */
    static boolean isBelow(String property, String written) {
        String below = plain(written);
        String above = plain(property);
        return below.equals(above) || below.startsWith(above + "_") || below.startsWith(above + "[");
    }

    /** A property's name in the form of an environment variable. */
    private static String plain(String property) {
        return property.toLowerCase(Locale.ROOT).replace("-", "").replace('.', '_');
    }

    private static RateLimitConfigurationException outside(
            String property, PropertySource<?> source, List<String> inside) {
        String kind = source.getName().equals(ENVIRONMENT) ? "environment variable" : "system property";
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
}
