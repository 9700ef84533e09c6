package io.ratelimit.autoconfigure;

import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.type.AnnotatedTypeMetadata;

/**
 * Condition that holds unless {@code ratelimit.enabled} is false. To Spring Boot's own condition {@code yes} is not true, so
 * it would disable limits without a message. A value that is not a boolean stops the start when it is bound.
 *
 * <p>An enabled limit stops the start on a Spring Boot that is too old. This condition is the first of our code that runs there,
 * so that no missing class of Spring Boot 4 leads to another report.
 */
public class RateLimitEnabledCondition extends SpringBootCondition {

    private static final String PROPERTY = RateLimitProperties.PREFIX + ".enabled";

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("Rate limiting");
        boolean enabled = isEnabled(context);
        if (enabled) {
            requireSpringBoot4(SpringBootVersion.getVersion());
        }
        return new ConditionOutcome(enabled, message.because("'" + PROPERTY + "' decides"));
    }

    private static void requireSpringBoot4(String version) {
        if (Integer.parseInt(version.substring(0, version.indexOf('.'))) < 4) {
            throw new RateLimitConfigurationException(
                    "ratelimit needs Spring Boot 4, but this application runs on Spring Boot " + version + ".",
                    "Upgrade to Spring Boot 4.0.7 or later, or remove 'ratelimit-spring-boot-starter'.");
        }
    }

    private static boolean isEnabled(ConditionContext context) {
        try {
            return !Boolean.FALSE.equals(Binder.get(context.getEnvironment())
                    .bind(PROPERTY, Boolean.class)
                    .orElse(true));
        } catch (BindException notABoolean) {
            return true;
        }
    }
}
