package io.ratelimit.policy;

import io.ratelimit.policy.RateLimitProperties.ClientAddress;
import io.ratelimit.policy.RateLimitProperties.Filter;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.Redis;
import io.ratelimit.policy.RateLimitProperties.Tier;
import java.time.ZoneId;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.origin.Origin;
import org.springframework.boot.origin.OriginLookup;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.Environment;

/** The reports of mistakes that stop the start. */
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

    /** Reports a policy with a value instead of properties ({@code api: 600/1m}); Spring Boot reports a missing converter. */
    @Order(0)
    static class ScalarPolicy extends AbstractFailureAnalyzer<BindException> {

        private final ConfigurationMistake analyzer;

        ScalarPolicy(Environment environment) {
            this.analyzer = new ConfigurationMistake(environment);
        }

        @Override
        protected @Nullable FailureAnalysis analyze(Throwable rootFailure, BindException cause) {
            if (cause.getTarget().getType().resolve() != Policy.class) {
                return null;
            }
            String property = cause.getName().toString();
            return analyzer.analyze(
                    rootFailure,
                    new RateLimitConfigurationException(
                            "'" + property + "' has a value, but a throttle policy consists of properties.",
                            "Write the properties below the policy's name, for example '"
                                    + RateLimitProperties.property("api") + ".rate: 600/1m'.",
                            property));
        }
    }

    /** Reports values whose form Spring Boot doesn't explain: a time zone that doesn't exist, and a share in percent. */
    @Order(0)
    static class UnreadableValue extends AbstractFailureAnalyzer<BindException> {

        private static final ConfigurationPropertyName PREFIX =
                ConfigurationPropertyName.of(RateLimitProperties.PREFIX);

        private final ConfigurationMistake analyzer;

        UnreadableValue(Environment environment) {
            this.analyzer = new ConfigurationMistake(environment);
        }

        @Override
        protected @Nullable FailureAnalysis analyze(Throwable rootFailure, BindException cause) {
            ConfigurationProperty written = cause.getProperty();
            if (written == null || !PREFIX.isAncestorOf(cause.getName())) {
                return null;
            }
            Class<?> type = cause.getTarget().getType().resolve();
            if (type == ZoneId.class) {
                return analyze(
                        rootFailure,
                        written,
                        "a time zone",
                        "Write the name of a region, such as Europe/Berlin, or an offset, such as +02:00 or UTC.");
            }
            return type == double.class
                    ? analyze(
                            rootFailure,
                            written,
                            "a number above 0 and at most 1",
                            "Write a fraction without a unit: 0.25 for 25%, the share of each of four instances.")
                    : null;
        }

        private FailureAnalysis analyze(
                Throwable rootFailure, ConfigurationProperty written, String required, String action) {
            String property = written.getName().toString();
            return analyzer.analyze(
                    rootFailure,
                    new RateLimitConfigurationException(
                            "'" + property + "' must be " + required + ", but was '" + written.getValue() + "'.",
                            action,
                            property));
        }
    }

    /** Reports unknown properties with the list of those that exist; Spring Boot reports only the unknown ones. */
    @Order(0)
    static class UnknownProperty extends AbstractFailureAnalyzer<UnboundConfigurationPropertiesException> {

        private static final ConfigurationPropertyName PREFIX =
                ConfigurationPropertyName.of(RateLimitProperties.PREFIX);
        private static final ConfigurationPropertyName POLICIES = PREFIX.append("policies");
        private static final ConfigurationPropertyName CLIENT_IP = PREFIX.append("client-ip");
        private static final ConfigurationPropertyName FILTER = PREFIX.append("filter");
        private static final ConfigurationPropertyName REDIS = PREFIX.append("redis");

        @Override
        protected @Nullable FailureAnalysis analyze(
                Throwable rootFailure, UnboundConfigurationPropertiesException cause) {
            List<ConfigurationProperty> unknown = cause.getUnboundProperties().stream()
                    .filter(property -> PREFIX.isAncestorOf(property.getName()))
                    .toList();
            return unknown.isEmpty() ? null : new FailureAnalysis(describe(unknown), action(unknown), cause);
        }

        private static String describe(List<ConfigurationProperty> unknown) {
            return unknown.stream()
                    .map(property -> "\n    " + shown(property) + ", with the value \"" + property.getValue() + "\": "
                            + property.getOrigin())
                    .collect(Collectors.joining("", "Rate limiting has no such property:\n", ""));
        }

        private static String action(List<ConfigurationProperty> unknown) {
            return "Correct or remove the property. The properties below '" + PREFIX + "' are: "
                    + names(RateLimitProperties.class)
                    + (isBelow(POLICIES, unknown)
                            ? "\nThe properties of a policy, whose name has no dot, are: " + names(Policy.class)
                            : "")
                    + (isBelow(CLIENT_IP, unknown)
                            ? "\nThe properties below 'client-ip' are: " + names(ClientAddress.class)
                            : "")
                    + (isBelow(FILTER, unknown) ? "\nThe properties below 'filter' are: " + names(Filter.class) : "")
                    + (isBelow(REDIS, unknown) ? "\nThe properties below 'redis' are: " + names(Redis.class) : "")
                    + (isIn(".overrides[", unknown)
                            ? "\nThe properties of an override are: " + names(OverrideEntry.class)
                            : "")
                    + (isIn(".tiers.", unknown) ? "\nThe properties of a tier are: " + names(Tier.class) : "")
                    + unknown.stream()
                            .filter(WrittenProperty::hasOtherPrefix)
                            .findFirst()
                            .map(UnknownProperty::rename)
                            .orElse("");
        }

        private static Object shown(ConfigurationProperty property) {
            return WrittenProperty.hasOtherPrefix(property) ? WrittenProperty.nameOf(property) : property.getName();
        }

        private static String rename(ConfigurationProperty property) {
            return "\n" + WrittenProperty.ONE_PREFIX + "if the property is not meant for this library, rename it, for"
                    + " example to 'app." + WrittenProperty.nameOf(property) + "'.";
        }

        private static boolean isBelow(ConfigurationPropertyName name, List<ConfigurationProperty> unknown) {
            return unknown.stream().anyMatch(property -> name.isAncestorOf(property.getName()));
        }

        private static boolean isIn(String part, List<ConfigurationProperty> unknown) {
            return unknown.stream()
                    .anyMatch(property -> property.getName().toString().contains(part));
        }

        private static String names(Class<? extends Record> properties) {
            return String.join(", ", RateLimitProperties.namesOf(properties)) + ".";
        }
    }
}
