package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.GuaranteedShare;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.Tier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.origin.Origin;
import org.springframework.boot.origin.OriginLookup;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.Environment;
import org.springframework.util.ClassUtils;

/** The reports of mistakes that stop the start: the reason, the property with file and line, and what to type. */
final class RateLimitFailureAnalyzers {

    private RateLimitFailureAnalyzers() {}

    /** Adds the file and the line of the property to the report. */
    static class ConfigurationMistake extends AbstractFailureAnalyzer<RateLimitConfigurationException> {

        private final ConfigurableEnvironment environment;

        ConfigurationMistake(Environment environment) {
            this.environment = (ConfigurableEnvironment) environment;
        }

        @Override
        protected FailureAnalysis analyze(Throwable rootFailure, RateLimitConfigurationException cause) {
            return new FailureAnalysis(cause.getMessage() + locations(cause.property()), cause.action(), cause);
        }

        /** Returns the locations of a property and the properties below it: file and line, or the name of the source. */
        private String locations(@Nullable String property) {
            return property == null
                    ? ""
                    : environment.getPropertySources().stream()
                            .filter(EnumerablePropertySource.class::isInstance)
                            .flatMap(source -> locations(property, (EnumerablePropertySource<?>) source))
                            .collect(Collectors.joining("", "\n", ""))
                            .stripTrailing();
        }

        private static Stream<String> locations(String property, EnumerablePropertySource<?> source) {
            return Stream.of(source.getPropertyNames())
                    .filter(written -> PolicyNames.isBelow(property, written))
                    .map(written -> "\n    " + written + ": " + origin(source, written));
        }

        private static Object origin(EnumerablePropertySource<?> source, String property) {
            Origin origin = OriginLookup.getOrigin(source, property);
            return origin != null ? origin : source.getName();
        }
    }

    /** Reports a value that can't be read as the type of its property. */
    @Order(0)
    static class UnreadableValue extends AbstractFailureAnalyzer<BindException> {

        private final ConfigurationMistake analyzer;

        UnreadableValue(Environment environment) {
            this.analyzer = new ConfigurationMistake(environment);
        }

        @Override
        protected @Nullable FailureAnalysis analyze(Throwable rootFailure, BindException cause) {
            boolean unknown = findCause(cause, UnboundConfigurationPropertiesException.class) != null;
            RateLimitConfigurationException mistake =
                    unknown || !isOurs(cause.getName().toString()) ? null : BadValue.of(cause);
            return mistake == null ? null : analyzer.analyze(rootFailure, mistake);
        }
    }

    /** Reports a value that can be read, but that its property can't have. */
    @Order(0)
    static class InvalidValue extends AbstractFailureAnalyzer<InvalidConfigurationPropertyValueException> {

        private final ConfigurationMistake analyzer;

        InvalidValue(Environment environment) {
            this.analyzer = new ConfigurationMistake(environment);
        }

        @Override
        protected @Nullable FailureAnalysis analyze(
                Throwable rootFailure, InvalidConfigurationPropertyValueException cause) {
            return isOurs(cause.getName()) ? analyzer.analyze(rootFailure, BadValue.of(cause)) : null;
        }
    }

    /** Reports unknown properties with the nearest that exist; Spring Boot reports only the unknown ones. */
    @Order(0)
    static class UnknownProperty extends AbstractFailureAnalyzer<UnboundConfigurationPropertiesException> {

        private static final ConfigurationPropertyName PREFIX =
                ConfigurationPropertyName.of(RateLimitProperties.PREFIX);

        @Override
        protected @Nullable FailureAnalysis analyze(
                Throwable rootFailure, UnboundConfigurationPropertiesException cause) {
            List<UnknownName> unknown = cause.getUnboundProperties().stream()
                    .filter(property -> PREFIX.isAncestorOf(property.getName()))
                    .map(UnknownName::new)
                    .toList();
            return unknown.isEmpty()
                    ? null
                    : new FailureAnalysis(
                            unknown.stream()
                                    .map(UnknownName::describe)
                                    .collect(Collectors.joining("", "Rate limiting has no such property:\n", "")),
                            unknown.stream()
                                    .flatMap(name -> name.actions().stream())
                                    .distinct()
                                    .collect(Collectors.joining("\n")),
                            cause);
        }
    }

    private static boolean isOurs(String property) {
        return property.startsWith(RateLimitProperties.PREFIX + ".");
    }

    /** Returns the constants of an enum as they are written in YAML. */
    static List<String> values(Class<?> type) {
        return Arrays.stream(type.getEnumConstants())
                .map(constant -> constant.toString().toLowerCase(Locale.ROOT).replace('_', '-'))
                .toList();
    }

    /** A property below {@code ratelimit} that doesn't exist, and the place of the name that is wrong. */
    private static final class UnknownName {

        /** The properties whose texts may contain a colon. */
        private static final Set<String> WITH_COLON = Set.of("key", "tier", "limit", "settle");

        private static final String WHOLE_LIST =
                "Write the whole list from [0] on, without a gap: a source that has one element of a list replaces all of it.";

        private final ConfigurationProperty property;
        private final Class<?> owner;
        private final int index;

        UnknownName(ConfigurationProperty property) {
            this.property = property;
            ConfigurationPropertyName name = property.getName();
            Class<?> type = RateLimitProperties.class;
            int at = 1;
            while (at < name.getNumberOfElements()) {
                ResolvableType component = component(type, element(name, at));
                int next = at + (isCollection(component) ? 2 : 1);
                ResolvableType value =
                        isCollection(component) ? component.getGeneric(component.getGenerics().length - 1) : component;
                if (!isGroup(value.toClass())
                        || next >= name.getNumberOfElements()
                        || value.toClass() == OverrideEntry.class && !name.isNumericIndex(at + 1)) {
                    break;
                }
                type = value.toClass();
                at = next;
            }
            this.owner = type;
            this.index = at;
        }

        /** Returns whether a type consists of properties; the other records of ours are read from a text. */
        private static boolean isGroup(Class<?> type) {
            return type.isRecord()
                    && (type.getEnclosingClass() == RateLimitProperties.class
                            || BackendProperties.class.isAssignableFrom(type))
                    && !ClassUtils.hasMethod(type, "of", String.class);
        }

        private static boolean isCollection(ResolvableType type) {
            return Map.class.isAssignableFrom(type.toClass()) || Collection.class.isAssignableFrom(type.toClass());
        }

        private static ResolvableType component(Class<?> type, String name) {
            int index = PolicyNames.namesOf(type).indexOf(name);
            return index < 0
                    ? ResolvableType.NONE
                    : ResolvableType.forType(type.getRecordComponents()[index].getGenericType());
        }

        private static String element(ConfigurationPropertyName name, int index) {
            return name.getElement(index, Form.ORIGINAL);
        }

        /** Returns the name as it is written, and where it is. The value may be a secret. */
        String describe() {
            return "\n    "
                    + (PolicyNames.hasOtherPrefix(property) ? PolicyNames.written(property) : property.getName())
                    + ": " + property.getOrigin();
        }

        /** Returns what to type: the nearest property, or else the list of all. */
        List<String> actions() {
            List<String> actions = new ArrayList<>();
            ConfigurationPropertyName name = property.getName();
            List<String> names = PolicyNames.namesOf(owner);
            String nearest = isNumberOfKeys() ? "for" : NearestName.of(element(name, index), names);
            if (names.contains(element(name, index))) {
                actions.add(isElement() ? WHOLE_LIST : asText());
            } else if (nearest != null && !PolicyNames.hasOtherPrefix(property)) {
                ConfigurationPropertyName meant = name.chop(index).append(nearest);
                actions.add("Write '" + meant + "' in place of '" + name.chop(index + 1) + "'.");
            } else {
                actions.add("Correct or remove the property.");
                actions.add("The properties " + place() + " are: "
                        + String.join(", ", names.stream().sorted().toList()) + ".");
            }
            if (PolicyNames.hasOtherPrefix(property)) {
                actions.add(PolicyNames.ONE_PREFIX
                        + "if the property is not meant for this library, rename it, for example to 'app."
                        + PolicyNames.written(property) + "'.");
            }
            return actions;
        }

        /** Returns whether the property exists, but is behind a gap in its list: Spring Boot doesn't read it. */
        private boolean isElement() {
            int below = property.getName().getNumberOfElements() - index - 1;
            return below == 0 || below == 1 && property.getName().isLastElementIndexed();
        }

        /** Returns what to type in place of properties below one that has a value. */
        private String asText() {
            ConfigurationPropertyName name = property.getName();
            if (element(name, index).equals("overrides")) {
                return BadValue.LIST_OF_OVERRIDES;
            }
            String text = name.getLastElement(Form.ORIGINAL) + ":" + property.getValue();
            return "Write the value of '" + name.chop(index + 1) + "' as one text"
                    + (WITH_COLON.contains(element(name, index))
                            ? ", without a space after the colon: '" + text + "'."
                            : ".");
        }

        /** Returns whether the name is {@code keys} in place of {@code for}: the key of a share is no number. */
        private boolean isNumberOfKeys() {
            return owner == GuaranteedShare.class
                    && element(property.getName(), index).equals("keys")
                    && String.valueOf(property.getValue()).matches("\\d+");
        }

        private String place() {
            if (owner == Policy.class) {
                return "of a policy, whose name has no dot,";
            }
            return owner == OverrideEntry.class
                    ? "of an override"
                    : owner == Tier.class
                            ? "of a tier"
                            : "below '" + property.getName().chop(index) + "'";
        }
    }
}
