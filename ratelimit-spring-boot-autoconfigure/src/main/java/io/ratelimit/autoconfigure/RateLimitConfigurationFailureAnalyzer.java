package io.ratelimit.autoconfigure;

import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.origin.Origin;
import org.springframework.boot.origin.OriginLookup;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.Environment;

/** Adds the file and the line of the property to the report. */
class RateLimitConfigurationFailureAnalyzer extends AbstractFailureAnalyzer<RateLimitConfigurationException> {

    private final ConfigurableEnvironment environment;

    RateLimitConfigurationFailureAnalyzer(Environment environment) {
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
