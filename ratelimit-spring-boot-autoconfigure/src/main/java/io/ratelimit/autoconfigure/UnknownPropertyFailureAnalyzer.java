package io.ratelimit.autoconfigure;

import io.ratelimit.autoconfigure.RateLimitProperties.ClientAddress;
import io.ratelimit.autoconfigure.RateLimitProperties.Filter;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.annotation.Order;

/** Says which properties there are, where Spring Boot says only that one was left unbound. */
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
                .collect(Collectors.joining("", "There is no such property of rate limiting:\n", ""));
    }

    private static String action(List<ConfigurationProperty> unknown) {
        return "Correct or remove what is misspelt. Below '" + PREFIX + "' there are: "
                + names(RateLimitProperties.class)
                + (isBelow(POLICIES, unknown) ? "\nA policy, whose name has no dot, has: " + names(Policy.class) : "")
                + (isBelow(CLIENT_IP, unknown) ? "\nBelow 'client-ip' there are: " + names(ClientAddress.class) : "")
                + (isBelow(FILTER, unknown) ? "\nBelow 'filter' there are: " + names(Filter.class) : "")
                + (isBelow(REDIS, unknown) ? "\nBelow 'redis' there are: " + names(RedisProperties.class) : "")
                + (isIn(".overrides[", unknown) ? "\nAn override has: " + names(PolicyOverride.class) : "")
                + (isIn(".tiers.", unknown) ? "\nA tier has: " + names(PolicyTier.class) : "");
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
