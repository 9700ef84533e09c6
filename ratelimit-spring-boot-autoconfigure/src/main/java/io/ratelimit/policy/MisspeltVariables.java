package io.ratelimit.policy;

import java.lang.reflect.Parameter;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.core.env.EnumerablePropertySource;

/**
 * Warnings of environment variables and system properties below {@code ratelimit} that set nothing, and whose names differ
 * little from one that does. Spring Boot ignores unknown names in these sources. They don't stop the start: Kubernetes sets
 * {@code RATELIMIT_SERVICE_HOST} for a service {@code ratelimit}.
 *
 * <p>{@link EnvironmentPolicies} checks the properties of policies.
 */
final class MisspeltVariables {

    private static final Log logger = LogFactory.getLog(MisspeltVariables.class);

    private static final String OURS = RateLimitProperties.PREFIX + "_";
    private static final String POLICIES = "policies";

    private MisspeltVariables() {}

    static void warn(EnumerablePropertySource<?> source) {
        List<String> written = Stream.of(source.getPropertyNames())
                .filter(name -> PolicyNames.plain(name).startsWith(OURS))
                .filter(name -> !PolicyNames.plain(name).startsWith(OURS + POLICIES))
                .toList();
        if (!written.isEmpty()) {
            Map<String, String> properties = properties();
            boolean variables = source.getName().equals(PolicyNames.ENVIRONMENT);
            for (String name : written) {
                String meant = meant(PolicyNames.plain(name).substring(OURS.length()), properties);
                if (meant != null) {
                    logger.warn("The " + (variables ? "environment variable" : "system property") + " '" + name
                            + "' sets no property. It was probably meant to be '"
                            + (variables ? variable(meant) : RateLimitProperties.PREFIX + "." + meant)
                            + "'. Correct or remove it");
                }
            }
        }
    }

    /** Returns the property that was probably meant; null if the name sets one, or if none is near. */
    private static @Nullable String meant(String name, Map<String, String> properties) {
        String whole = name.replaceFirst("([_\\[]\\d+]?)+$", "");
        if (properties.values().stream().anyMatch(property -> isName(whole, property))) {
            return null;
        }
        int head = whole.indexOf('_');
        if (head > 0 && NearestName.of(whole.substring(0, head), List.of(POLICIES)) != null) {
            return POLICIES + ".…";
        }
        String nearest = NearestName.of(whole.replace("_", ""), properties.keySet());
        return nearest == null ? null : properties.get(nearest);
    }

    /** Returns whether Spring Boot looks a property up by a name: without dashes, or with an underscore for each. */
    private static boolean isName(String plain, String property) {
        return plain.equals(PolicyNames.plain(property)) || plain.equals(PolicyNames.plain(property.replace('-', '_')));
    }

    /** Returns the properties outside of policies by their letters and digits. */
    private static Map<String, String> properties() {
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

    private static String variable(String property) {
        return (OURS + PolicyNames.plain(property)).toUpperCase(Locale.ROOT);
    }
}
