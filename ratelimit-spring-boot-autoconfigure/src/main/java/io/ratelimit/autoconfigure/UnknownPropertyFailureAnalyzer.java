package io.ratelimit.autoconfigure;

import io.ratelimit.autoconfigure.RateLimitProperties.ClientAddress;
import io.ratelimit.autoconfigure.RateLimitProperties.Filter;
import io.ratelimit.autoconfigure.RateLimitProperties.OverrideEntry;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.autoconfigure.RateLimitProperties.Tier;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.annotation.Order;

/** Reports unknown properties with the list of those that exist; Spring Boot reports only the unknown ones. */
@Order(0)
class UnknownPropertyFailureAnalyzer extends AbstractFailureAnalyzer<UnboundConfigurationPropertiesException> {

    private static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of(RateLimitProperties.PREFIX);
    private static final ConfigurationPropertyName POLICIES = PREFIX.append("policies");
    private static final ConfigurationPropertyName CLIENT_IP = PREFIX.append("client-ip");
    private static final ConfigurationPropertyName FILTER = PREFIX.append("filter");
    private static final ConfigurationPropertyName REDIS = PREFIX.append("redis");

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, UnboundConfigurationPropertiesException cause) {
        List<ConfigurationProperty> unknown = cause.getUnboundProperties().stream()
                .filter(property -> PREFIX.isAncestorOf(property.getName()))
                .toList();
        return unknown.isEmpty() ? null : new FailureAnalysis(describe(unknown), action(unknown), cause);
    }

    private static String describe(List<ConfigurationProperty> unknown) {
        return unknown.stream()
                .map(property -> "\n    " + property.getName() + ", with the value \"" + property.getValue() + "\": "
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
                + (isBelow(REDIS, unknown) ? "\nThe properties below 'redis' are: " + names(RedisProperties.class) : "")
                + (isIn(".overrides[", unknown)
                        ? "\nThe properties of an override are: " + names(OverrideEntry.class)
                        : "")
                + (isIn(".tiers.", unknown) ? "\nThe properties of a tier are: " + names(Tier.class) : "");
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
