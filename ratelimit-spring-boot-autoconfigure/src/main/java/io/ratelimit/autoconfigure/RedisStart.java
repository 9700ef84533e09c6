package io.ratelimit.autoconfigure;

import io.ratelimit.BackendException;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.redis.RedisStorage;
import io.ratelimit.remote.FailoverBucketStore;
import java.time.Duration;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.ObjectProvider;

/** The start of Redis, with advice about policies and settings that don't fit it. */
final class RedisStart extends BackendStart {

    private static final Log logger = LogFactory.getLog(RedisStart.class);

    private final RedisStorage storage;
    private final ObjectProvider<Throttlers> throttlers;
    private final ConfiguredPolicies policies;

    RedisStart(
            RedisStorage storage,
            FailoverBucketStore store,
            ObjectProvider<Throttlers> throttlers,
            ConfiguredPolicies policies) {
        super(storage, store, policies.asksShared());
        this.storage = storage;
        this.throttlers = throttlers;
        this.policies = policies;
    }

    @Override
    void started(boolean connected) {
        throttlers.getObject().all().stream()
                .map(PolicyThrottler::policy)
                .filter(policies::isShared)
                .forEach(RedisStart::warnAboutWait);
        if (connected) {
            warnAboutEviction();
        }
    }

    private static void warnAboutWait(ThrottlePolicy policy) {
        Duration maxWait = RedisStorage.maxWait(policy);
        if (policy.maxWait().compareTo(maxWait) > 0) {
            logger.warn("Throttle policy '" + policy.name()
                    + "' has a 'max-wait' beyond the time by which tokens can be taken"
                    + " ahead in Redis, which is " + maxWait.toMinutes()
                    + "m: a call that would wait longer is denied. Set a shorter 'max-wait', or a rate of rounder"
                    + " numbers");
        }
    }

    private void warnAboutEviction() {
        try {
            RedisStorage.Memory memory = storage.memory();
            if (memory.mayEvict()) {
                logger.warn(
                        "Redis may evict buckets when its memory is full (maxmemory-policy is '"
                                + memory.policy()
                                + "'), and an evicted bucket is full again: set 'noeviction', or use a separate Redis for the limits");
            }
        } catch (BackendException forbidden) {
            logger.debug("The memory policy of Redis is unknown: " + forbidden.getMessage());
        }
    }
}
