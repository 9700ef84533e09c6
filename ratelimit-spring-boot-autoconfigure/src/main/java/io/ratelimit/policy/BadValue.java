package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.Tier;
import java.time.ZoneId;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.convert.ConversionFailedException;
import org.springframework.core.convert.ConverterNotFoundException;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringUtils;

/** Converts the reasons for which values can't be used into a mistake with a reason and what to type. */
final class BadValue {

    /** The end of the reason in a text such as {@code '5' has no unit: write '5ms'}; what follows is the action. */
    private static final Pattern ACTION =
            Pattern.compile("(?::|\\.) (?=(?:write|set|put|remove|raise)\\b|(?:Write|Set|Remove|If|For that)\\b)");

    /** What to type in place of overrides that aren't a list. */
    static final String LIST_OF_OVERRIDES = "Write 'overrides' as a list, with a dash before each override:"
            + "\n    overrides:\n      - { keys: [alice], rate: 5/s }";

    private static final Pattern EXAMPLE = Pattern.compile("(?:such as|as in) '?([^', ]+)");

    private static final Pattern KEY_PART = Pattern.compile("'(.*)' is not a part of a key: write (.*)");

    private static final Pattern PLACEHOLDER = Pattern.compile("\\$\\{[^${}:]+}");

    /** The values to suggest where the reason contains none. */
    private static final Map<String, String> EXAMPLES = Map.ofEntries(
            Map.entry("rate", "600/1m"),
            Map.entry("capacity", "800"),
            Map.entry("in-flight", "4"),
            Map.entry("cost", "5"),
            Map.entry("max-cost", "50"),
            Map.entry("for", "50"),
            Map.entry("leave", "30%"),
            Map.entry("settle", "attribute:tokens"),
            Map.entry("key", "ip"),
            Map.entry("max-keys", "100000"),
            Map.entry("paths", "/orders/**"),
            Map.entry("exclude-paths", "/orders/**"),
            Map.entry("methods", "POST"),
            Map.entry("condition", "method == 'POST'"),
            Map.entry("max-wait", "2s"),
            Map.entry("queue-limit", "20"),
            Map.entry("refund-on", "404"),
            Map.entry("rejection-delay", "2s"),
            Map.entry("retry-jitter", "1ms-5ms"),
            Map.entry("status", "429"),
            Map.entry("lease", "50ms"),
            Map.entry("header", "x-forwarded-for"),
            Map.entry("trusted-proxies", "10.0.0.0/8"),
            Map.entry("ipv6-prefix", "64"),
            Map.entry("after-authentication-order", "-99"),
            Map.entry("timeout", "100ms"),
            Map.entry("local-share", "0.25"),
            Map.entry("key-prefix", "shop"));

    private BadValue() {}

    /** Returns the mistake of a value that can't be read; null if no reason is known. */
    static @Nullable RateLimitConfigurationException of(BindException failure) {
        ConfigurationProperty written = failure.getProperty();
        RateLimitConfigurationException empty = written == null
                ? null
                : ofPlaceholder(failure, written.getName().toString());
        return empty == null ? ofValue(failure, written) : empty;
    }

    /** Returns the mistake of a value that can be read, but that its property can't have. */
    static RateLimitConfigurationException of(InvalidConfigurationPropertyValueException failure) {
        RateLimitConfigurationException empty = ofPlaceholder(failure.getValue(), failure.getName());
        return empty == null ? of(failure.getName(), String.valueOf(failure.getReason())) : empty;
    }

    private static @Nullable RateLimitConfigurationException ofPlaceholder(BindException failure, String property) {
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            RateLimitConfigurationException empty = cause instanceof ConversionFailedException unread
                    ? ofPlaceholder(unread.getValue(), property)
                    : null;
            if (empty != null) {
                return empty;
            }
        }
        return null;
    }

    /** Returns the mistake of a placeholder that has no value; null if the value contains none. */
    private static @Nullable RateLimitConfigurationException ofPlaceholder(@Nullable Object value, String property) {
        String placeholder = placeholder(value);
        if (placeholder == null) {
            return null;
        }
        String name = placeholder.substring(2, placeholder.length() - 1);
        return new RateLimitConfigurationException(
                "The placeholder '" + placeholder + "' has no value.",
                "Set '" + name + "', or write a value for its absence: '${" + name + ":"
                        + EXAMPLES.getOrDefault(leaf(property), "VALUE") + "}'.",
                property);
    }

    /** Returns the first placeholder that has no value; null if the value contains none. */
    static @Nullable String placeholder(@Nullable Object value) {
        Matcher placeholder = PLACEHOLDER.matcher(String.valueOf(value));
        return placeholder.find() ? placeholder.group() : null;
    }

    private static @Nullable RateLimitConfigurationException ofValue(
            BindException failure, @Nullable ConfigurationProperty written) {
        Class<?> type = ClassUtils.resolvePrimitiveIfNecessary(
                failure.getTarget().getType().resolve(Object.class));
        if (written == null) {
            return ofStructure(failure, failure.getName().toString(), type);
        }
        String property = written.getName().toString();
        Object value = written.getValue();
        if (type.isEnum()) {
            return ofChoice(property, value, type);
        }
        if (type == Boolean.class) {
            return mistake(property, value, "true or false", "Write true or false.");
        }
        if (type == ZoneId.class) {
            return mistake(
                    property,
                    value,
                    "a time zone",
                    "Write the name of a region, such as Europe/Berlin, or an offset, such as +02:00 or UTC.");
        }
        if (type == Double.class) {
            return mistake(
                    property,
                    value,
                    "a number above 0 and at most 1",
                    "Write a fraction without a unit: 0.25 for 25%, the share of each of four instances.");
        }
        if (Number.class.isAssignableFrom(type)) {
            return mistake(property, value, wholeNumber(value, type), example(property, ""));
        }
        return ofStructure(failure, property, type);
    }

    private static RateLimitConfigurationException mistake(
            String property, @Nullable Object value, String required, String action) {
        return new RateLimitConfigurationException(
                "'" + property + "' must be " + required + ", but was '" + value + "'.", action, property);
    }

    private static String wholeNumber(@Nullable Object value, Class<?> type) {
        boolean tooLarge = String.valueOf(value).matches("-?\\d+");
        long largest = type == Integer.class ? Integer.MAX_VALUE : Long.MAX_VALUE;
        return "a whole number" + (tooLarge ? String.format(Locale.ROOT, " of at most %,d", largest) : "");
    }

    private static RateLimitConfigurationException ofChoice(String property, @Nullable Object value, Class<?> type) {
        List<String> values = RateLimitFailureAnalyzers.values(type);
        String leaf = leaf(property);
        if (Boolean.TRUE.equals(value)) {
            return new RateLimitConfigurationException(
                    "YAML reads 'on', 'yes' and 'true' as a boolean, which '" + property + "' can't be.",
                    "Write '" + leaf + ": " + values.get(0) + "'. The values are: " + String.join(", ", values) + ".",
                    property);
        }
        String nearest = NearestName.of(String.valueOf(value), values);
        return mistake(
                property,
                value,
                "one of " + String.join(", ", values),
                nearest == null
                        ? "Write one of these values, for example '" + leaf + ": " + values.get(0) + "'."
                        : "Write '" + leaf + ": " + nearest + "'.");
    }

    private static @Nullable RateLimitConfigurationException ofStructure(
            BindException failure, String property, Class<?> type) {
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            if (cause instanceof IllegalArgumentException && cause.getMessage() != null) {
                return of(property, cause.getMessage());
            }
            if (cause instanceof ConverterNotFoundException) {
                return ofScalar(property, type);
            }
        }
        return null;
    }

    private static RateLimitConfigurationException ofScalar(String property, Class<?> type) {
        if (type == Policy.class) {
            return new RateLimitConfigurationException(
                    "'" + property + "' has a value, but a throttle policy consists of properties.",
                    "Write the properties below the policy's name, for example '" + RateLimitProperties.property("api")
                            + ".rate: 600/1m'.",
                    property);
        }
        return new RateLimitConfigurationException(
                "'" + property + "' has a value, but consists of properties.",
                type == Tier.class
                        ? "Write the properties below the tier's name, for example '" + property + ".rate: 6000/1m'."
                        : leaf(property).equals("overrides")
                                ? LIST_OF_OVERRIDES
                                : "Write the properties below '" + property + "'.",
                property);
    }

    /** Returns the mistake of a value whose reason is a text that may contain what to type. */
    static RateLimitConfigurationException of(String property, String reason) {
        Matcher action = ACTION.matcher(reason);
        boolean found = action.find();
        Matcher part = KEY_PART.matcher(reason);
        String nearest = part.matches()
                ? NearestName.of(part.group(1), List.of(part.group(2).split(", | or ")))
                : null;
        return new RateLimitConfigurationException(
                sentence(found ? reason.substring(0, action.start()) : reason),
                (nearest == null ? "" : "Did you mean '" + nearest + "'? ")
                        + (found
                                ? sentence(StringUtils.capitalize(reason.substring(action.end())))
                                : example(property, reason)),
                property);
    }

    private static String sentence(String text) {
        return text.endsWith(".") || text.indexOf('\n') >= 0 ? text : text + ".";
    }

    private static String example(String property, String reason) {
        Matcher inReason = EXAMPLE.matcher(reason);
        String example = inReason.find() ? inReason.group(1) : EXAMPLES.get(leaf(property));
        if (example == null) {
            return "Correct '" + property + "'.";
        }
        String quote = example.contains("'") ? "\"" : "'";
        return "Correct it, for example " + quote + leaf(property) + ": " + example + quote + ".";
    }

    /** Returns the last name of a property, without an index. */
    private static String leaf(String property) {
        String name = property.replaceAll("(\\[\\d+])+$", "");
        return name.substring(name.lastIndexOf('.') + 1);
    }
}
