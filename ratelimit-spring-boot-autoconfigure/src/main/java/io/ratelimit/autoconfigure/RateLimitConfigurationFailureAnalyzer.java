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

class RateLimitConfigurationFailureAnalyzer extends AbstractFailureAnalyzer<RateLimitConfigurationException> {

    private final ConfigurableEnvironment environment;

    RateLimitConfigurationFailureAnalyzer(Environment environment) {
        this.environment = (ConfigurableEnvironment) environment;
    }

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, RateLimitConfigurationException cause) {
        return new FailureAnalysis(cause.getMessage() + whereabouts(cause.property()), cause.action(), cause);
    }

    /** Where a property and those below it are set: file and line where Spring knows them. */
    private String whereabouts(@Nullable String property) {
        return property == null
                ? ""
                : environment.getPropertySources().stream()
                        .filter(EnumerablePropertySource.class::isInstance)
                        .flatMap(source -> whereabouts(property, (EnumerablePropertySource<?>) source))
                        .collect(Collectors.joining("", "\n", ""))
                        .stripTrailing();
    }

    private static Stream<String> whereabouts(String property, EnumerablePropertySource<?> source) {
        return Stream.of(source.getPropertyNames())
                .filter(written -> PolicyNames.isBelow(property, written))
                .map(written -> "\n    " + written + ": " + origin(source, written));
    }

    private static Object origin(EnumerablePropertySource<?> source, String property) {
        Origin origin = OriginLookup.getOrigin(source, property);
        return origin != null ? origin : source.getName();
    }
}
