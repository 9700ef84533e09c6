package io.ratelimit.autoconfigure;

import io.ratelimit.Waiting;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** Reads how long the calls of a policy may wait in line, and how many. */
final class PolicyWaiting {

    private PolicyWaiting() {}

    static Waiting of(String name, Policy policy) {
        MaxWait written = policy.maxWait();
        Integer queueLimit = policy.queueLimit();
        String property = RateLimitProperties.property(name);
        if (written == null && queueLimit != null && policy.appliesTo() == AppliesTo.REQUESTS) {
            throw new RateLimitConfigurationException(
                    "The throttle policy '" + name + "' has a queue-limit, but lets no request wait.",
                    "Say for how long they may, as in '" + property + ".max-wait: 2s', or remove the queue-limit.",
                    property + ".queue-limit");
        }
        return of(written == null ? Duration.ZERO : written.duration(), queueLimit, property);
    }

    private static Waiting of(Duration maxWait, @Nullable Integer queueLimit, String property) {
        try {
            return new Waiting(maxWait, queueLimit == null ? Waiting.DEFAULT_QUEUE_LIMIT : queueLimit);
        } catch (IllegalArgumentException refused) {
            throw new InvalidConfigurationPropertyValueException(
                    property + ".queue-limit", queueLimit, refused.getMessage(), refused);
        }
    }
}
