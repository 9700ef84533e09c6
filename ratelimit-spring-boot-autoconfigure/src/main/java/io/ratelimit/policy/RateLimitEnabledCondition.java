package io.ratelimit.policy;

import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.core.type.ClassMetadata;

/**
 * Condition that holds unless {@code ratelimit.enabled} is false. To Spring Boot's own condition {@code yes} is not true, so
 * it would disable limits. A value that is not a boolean stops the start when it is bound. Limits that are disabled are one
 * warning with the origin of the property.
 *
 * <p>An enabled limit stops the start on a Spring Boot that is too old. This condition is the first of our code that runs there,
 * so that no missing class of Spring Boot 4 leads to another report.
 */
public final class RateLimitEnabledCondition extends SpringBootCondition {

    private static final Log logger = LogFactory.getLog(RateLimitEnabledCondition.class);
    private static final String FIRST = "io.ratelimit.autoconfigure.RateLimitAutoConfiguration";
    private static final String PROPERTY = RateLimitProperties.PREFIX + ".enabled";

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("Rate limiting");
        boolean enabled = isEnabled(context);
        boolean first = isOn(FIRST, metadata);
        if (enabled) {
            requireSpringBoot4(SpringBootVersion.getVersion());
            if (first) {
                warnOfUntested(SpringBootVersion.getVersion());
            }
        } else if (first) {
            warn(context.getEnvironment());
        }
        return new ConditionOutcome(enabled, message.because("'" + PROPERTY + "' decides"));
    }

    /** Returns whether the condition is that of a class. Several classes have it, and one warning is enough. */
    private static boolean isOn(String type, AnnotatedTypeMetadata metadata) {
        return metadata instanceof ClassMetadata annotated
                && annotated.getClassName().equals(type);
    }

    private static void warn(Environment environment) {
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            ConfigurationProperty property = source.getConfigurationProperty(ConfigurationPropertyName.of(PROPERTY));
            if (property != null) {
                String name = PolicyNames.written(property);
                logger.warn("No limit is enforced, neither the policies below 'ratelimit.policies' nor @RateLimited: '"
                        + name + "' is false (" + property.getOrigin() + ")"
                        + (PolicyNames.hasOtherPrefix(property)
                                ? ". " + PolicyNames.ONE_PREFIX + "rename '" + name
                                        + "' if it is not meant for this library"
                                : ""));
                return;
            }
        }
    }

    private static void requireSpringBoot4(String version) {
        if (Integer.parseInt(version.substring(0, version.indexOf('.'))) < 4) {
            throw new RateLimitConfigurationException(
                    "ratelimit needs Spring Boot 4, but this application runs on Spring Boot " + version + ".",
                    "Upgrade to Spring Boot 4.0.7 or later, or remove 'ratelimit-spring-boot-starter'.");
        }
    }

    static void warnOfUntested(String version) {
        if (version.matches("4\\.0\\.[0-6](\\D.*)?")) {
            logger.warn("ratelimit is tested on Spring Boot 4.0.7 and later, but this application runs on Spring Boot "
                    + version + ": limits may not work. Upgrade to 4.0.7 or later");
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
