package io.ratelimit.autoconfigure;

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
 */
public class RateLimitEnabledCondition extends SpringBootCondition {

    private static final String PROPERTY = RateLimitProperties.PREFIX + ".enabled";

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("Rate limiting");
        return new ConditionOutcome(isEnabled(context), message.because("'" + PROPERTY + "' decides"));
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
