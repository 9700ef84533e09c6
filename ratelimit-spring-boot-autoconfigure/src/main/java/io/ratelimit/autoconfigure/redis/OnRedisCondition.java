package io.ratelimit.autoconfigure.redis;

import io.ratelimit.autoconfigure.BackendKind;
import java.util.HashSet;
import java.util.Set;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Holds where the application or one of its policies says {@code backend: redis}. */
class OnRedisCondition extends SpringBootCondition {

    private static final ConfigurationPropertyName BACKEND = ConfigurationPropertyName.of("ratelimit.backend");
    private static final ConfigurationPropertyName POLICIES = ConfigurationPropertyName.of("ratelimit.policies");

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("Limits on Redis");
        return new ConditionOutcome(isWanted(context.getEnvironment()), message.because("'backend' decides"));
    }

    private static boolean isWanted(Environment environment) {
        Binder binder = Binder.get(environment);
        try {
            if (isRedis(binder, BACKEND)) {
                return true;
            }
            for (ConfigurationPropertyName policy : policies(environment)) {
                if (isRedis(binder, policy.append("backend"))) {
                    return true;
                }
            }
            return false;
        } catch (BindException malformed) {
            return false; // which stops the start when it is bound as a whole
        }
    }

    private static boolean isRedis(Binder binder, ConfigurationPropertyName name) {
        return binder.bind(name, Bindable.of(BackendKind.class)).orElse(null) == BackendKind.REDIS;
    }

    /** The policies that binding finds, by the names of their properties: to bind them takes several times as long. */
    private static Set<ConfigurationPropertyName> policies(Environment environment) {
        Set<ConfigurationPropertyName> policies = new HashSet<>();
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            if (source instanceof IterableConfigurationPropertySource properties) {
                for (ConfigurationPropertyName property : properties) {
                    if (POLICIES.isAncestorOf(property)) {
                        policies.add(property.chop(POLICIES.getNumberOfElements() + 1));
                    }
                }
            }
        }
        return policies;
    }
}
