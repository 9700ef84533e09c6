package io.ratelimit.autoconfigure.redis;

import java.util.Locale;
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

    private static final String REDIS = "redis";

    /** All of a policy that matters here. */
    record Place(@Nullable String backend) {}

    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("Limits on Redis");
        return new ConditionOutcome(
                isWanted(Binder.get(context.getEnvironment())), message.because("'backend' decides"));
    }

    private static boolean isWanted(Binder binder) {
        try {
            BindResult<String> all = binder.bind("ratelimit.backend", String.class);
            BindResult<Map<String, Place>> policies =
                    binder.bind("ratelimit.policies", Bindable.mapOf(String.class, Place.class));
            return all.isBound() && isRedis(all.get())
                    || policies.isBound()
                            && policies.get().values().stream().anyMatch(policy -> isRedis(policy.backend()));
        } catch (BindException malformed) {
            return false; // which stops the start when it is bound as a whole
        }
    }

    private static boolean isRedis(@Nullable String backend) {
        return backend != null && backend.strip().toLowerCase(Locale.ROOT).equals(REDIS);
    }
}
