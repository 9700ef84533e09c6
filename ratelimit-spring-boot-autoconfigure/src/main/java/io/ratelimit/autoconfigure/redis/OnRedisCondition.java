package io.ratelimit.autoconfigure.redis;

import io.ratelimit.autoconfigure.BackendKind;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.BindResult;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** Holds where the application or one of its policies says {@code backend: redis}. */
class OnRedisCondition extends SpringBootCondition {

    /** All of a policy that matters here. */
    record Place(@Nullable BackendKind backend) {}

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("Limits on Redis");
        return new ConditionOutcome(
                isWanted(Binder.get(context.getEnvironment())), message.because("'backend' decides"));
    }

    private static boolean isWanted(Binder binder) {
        try {
            BindResult<BackendKind> all = binder.bind("ratelimit.backend", BackendKind.class);
            BindResult<Map<String, Place>> policies =
                    binder.bind("ratelimit.policies", Bindable.mapOf(String.class, Place.class));
            return all.isBound() && all.get() == BackendKind.REDIS
                    || policies.isBound()
                            && policies.get().values().stream()
                                    .anyMatch(policy -> policy.backend() == BackendKind.REDIS);
        } catch (BindException malformed) {
            return false; // which stops the start when it is bound as a whole
        }
    }
}
