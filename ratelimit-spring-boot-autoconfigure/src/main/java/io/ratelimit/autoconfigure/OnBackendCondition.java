package io.ratelimit.autoconfigure;

import io.ratelimit.policy.BackendProperties.BackendKind;
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

/** A condition that matches if a backend is set for the application or for a policy. */
abstract class OnBackendCondition extends SpringBootCondition {

    private static final ConfigurationPropertyName BACKEND = ConfigurationPropertyName.of("ratelimit.backend");
    private static final ConfigurationPropertyName POLICIES = ConfigurationPropertyName.of("ratelimit.policies");

    private final BackendKind kind;

    OnBackendCondition(BackendKind kind) {
        this.kind = kind;
    }

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("Limits on " + kind.place());
        return new ConditionOutcome(isConfigured(context.getEnvironment()), message.because("'backend' decides"));
    }

    private boolean isConfigured(Environment environment) {
        Binder binder = Binder.get(environment);
        try {
            if (isKind(binder, BACKEND)) {
                return true;
            }
            for (ConfigurationPropertyName policy : policies(environment)) {
                if (isKind(binder, policy.append("backend"))) {
                    return true;
                }
            }
            return false;
        } catch (BindException malformed) {
            return false; // the start fails later, when all properties are bound
        }
    }

    private boolean isKind(Binder binder, ConfigurationPropertyName name) {
        return binder.bind(name, Bindable.of(BackendKind.class)).orElse(null) == kind;
    }

    /** Returns the policies, found by the names of their properties, as binding them takes several times as long. */
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
