package io.ratelimit.autoconfigure.redis;

import io.ratelimit.BackendException;
import io.ratelimit.redis.FailoverBucketStore;
import io.ratelimit.redis.RedisBuckets;
import io.ratelimit.redis.RedisMemory;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;

/** Tries Redis out when the application starts, off the deadline of any request. It starts in any case. */
final class RedisStart implements SmartInitializingSingleton {

    private static final Log logger = LogFactory.getLog(RedisStart.class);

    private final RedisBuckets buckets;
    private final FailoverBucketStore store;

    RedisStart(RedisBuckets buckets, FailoverBucketStore store) {
        this.buckets = buckets;
        this.store = store;
    }

    @Override
    public void afterSingletonsInstantiated() {
        try {
            buckets.selfTest();
        } catch (BackendException failed) {
            store.failedAtStart(failed);
            return;
        }
        warnOfEviction();
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
