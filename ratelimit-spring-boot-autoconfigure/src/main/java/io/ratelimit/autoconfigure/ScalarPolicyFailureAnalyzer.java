package io.ratelimit.autoconfigure;

import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.Environment;

/** Reports a policy with a value instead of properties ({@code api: 600/1m}); Spring Boot reports a missing converter. */
@Order(0)
class ScalarPolicyFailureAnalyzer extends AbstractFailureAnalyzer<BindException> {

    private final RateLimitConfigurationFailureAnalyzer analyzer;

    ScalarPolicyFailureAnalyzer(Environment environment) {
        this.analyzer = new RateLimitConfigurationFailureAnalyzer(environment);
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
