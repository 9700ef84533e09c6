package io.ratelimit.autoconfigure.redis;

import io.ratelimit.BackendException;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.redis.FailoverBucketStore;
import io.ratelimit.redis.RedisBuckets;
import io.ratelimit.redis.RedisMemory;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;

/** Tries Redis out when the application starts, off the deadline of any request. It starts in any case. */
final class RedisStart implements SmartInitializingSingleton {

    private static final Log logger = LogFactory.getLog(RedisStart.class);

    private final RedisBuckets buckets;
    private final FailoverBucketStore store;
    private final Supplier<List<ThrottlePolicy>> policies;
    private final boolean asked;

    /**
     * @param policies that have their buckets there
     * @param asked whether any of them is not off: otherwise nobody connects
     */
    RedisStart(
            RedisBuckets buckets, FailoverBucketStore store, Supplier<List<ThrottlePolicy>> policies, boolean asked) {
        this.buckets = buckets;
        this.store = store;
        this.policies = policies;
        this.asked = asked;
    }

    @Override
    public void afterSingletonsInstantiated() {
        if (asked) {
            tryOut();
        }
    }

    private void tryOut() {
        policies.get().forEach(RedisStart::warnOfWait);
        try {
            buckets.selfTest();
        } catch (BackendException failed) {
            store.failedAtStart(failed);
            return;
        }
        warnOfEviction();
    }

    private static void warnOfWait(ThrottlePolicy policy) {
        Duration longest = RedisBuckets.longestWait(policy);
        if (policy.waiting().maxWait().compareTo(longest) > 0) {
            logger.warn(
                    "Throttle policy '" + policy.name() + "' lets calls wait for longer than its tokens can be counted"
                            + " ahead in Redis, which is " + longest.toMinutes()
                            + "m: who would wait for longer is refused. Say a shorter 'max-wait', or a rate of rounder numbers");
        }
    }

    private void warnOfEviction() {
        try {
            RedisMemory memory = buckets.memory();
            if (memory.mayEvict()) {
                logger.warn("Redis may throw away buckets when its memory is full (maxmemory-policy is '"
                        + memory.policy()
                        + "'), and who drained one gets a full one: say 'noeviction', or give limits a"
                        + " Redis of their own");
            }
        } catch (BackendException forbidden) {
            logger.debug("Redis doesn't tell its memory policy: " + forbidden.getMessage());
        }
    }
}
