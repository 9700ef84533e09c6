package io.ratelimit.policy;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.origin.Origin;
import org.springframework.boot.origin.OriginLookup;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.Environment;

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
            return isOurs(cause.getName())
                    ? analyzer.analyze(rootFailure, BadValue.of(cause.getName(), String.valueOf(cause.getReason())))
                    : null;
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
}
