package io.ratelimit.redis;

import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.lease.LeasingBucketStore;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * A store that counts by a script in Redis. On a single server one script call handles all charges, all or nothing. A
 * cluster needs a {@linkplain BucketByBucket call for each bucket}. Thread-safe.
 */
final class RedisScriptBucketStore extends RedisBucketStore implements LeasingBucketStore {

    private static final Log logger = LogFactory.getLog(RedisScriptBucketStore.class);

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final ScriptCalls script;
    private final CombinedTakes combined;
    private volatile boolean oneKeyPerScript;

    /** @param oneKeyPerScript whether Redis is a cluster */
    RedisScriptBucketStore(
            Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis,
            RedisKeys keys,
            Deadline deadline,
            FailureJudge judge,
            boolean oneKeyPerScript,
            LongSupplier time) {
        this(redis, keys, deadline, judge, oneKeyPerScript, time, TimeSource.system());
    }

    /** @param clock this machine's, which doesn't decide: it estimates the server's time between two replies */
    RedisScriptBucketStore(
            Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis,
            RedisKeys keys,
            Deadline deadline,
            FailureJudge judge,
            boolean oneKeyPerScript,
            LongSupplier time,
            TimeSource clock) {
        super(deadline, judge);
        this.redis = redis;
        this.script = new ScriptCalls(new RedisScript(redis, clock), keys, time);
        this.oneKeyPerScript = oneKeyPerScript;
        this.combined = new CombinedTakes(sameTakes());
    }

    /** Returns the calls that several takes of the same cost from the same bucket share. */
    CombinedTakes.Calls sameTakes() {
        return new SameTakes(script);
    }

    @Override
    Decision take(List<Charge> charges, Timing timing, Deadline.Call call) {
        return take(charges, List.of(), timing, call);
    }

    @Override
    public Decision take(List<Charge> charges, List<LeaseRequest> leases) {
        return call(call -> take(charges, leases, Timing.AT_ONCE, call));
    }

    private Decision take(List<Charge> charges, List<LeaseRequest> leases, Timing timing, Deadline.Call call) {
        if (charges.size() == 1 && leases.isEmpty() && timing == Timing.AT_ONCE) {
            return Decision.of(List.of(combined.take(charges.get(0), call)));
        }
        if (!oneKeyPerScript) {
            try {
                return Decision.of(charges.isEmpty() ? List.of() : script.take(charges, leases, timing, call));
            } catch (BackendException failed) {
                rethrowUnlessCluster(failed);
            }
        }
        return new BucketByBucket(script, call).take(charges, leases, timing);
    }

    /** Detects a cluster by its error, and throws any other failure. */
    private void rethrowUnlessCluster(BackendException failed) {
        Throwable cause = failed.getCause();
        if (cause == null || !RedisFailures.isCrossSlot(cause)) {
            throw failed;
        }
        if (!oneKeyPerScript) {
            oneKeyPerScript = true;
            logger.warn("Redis is a cluster behind a single address: from now on there is one script call for each"
                    + " bucket. Configure the cluster by 'spring.data.redis.cluster.nodes'.");
        }
    }

    @Override
    public BucketSnapshot lease(LeaseRequest lease) {
        return call(call -> script.lease(lease, call));
    }

    @Override
    void giveBack(List<Answer> taken, Deadline.Call call) {
        if (!oneKeyPerScript) {
            try {
                RedisScript.result(script.startGivingBack(taken), call);
                return;
            } catch (BackendException failed) {
                rethrowUnlessCluster(failed);
            }
        }
        new BucketByBucket(script, call).giveBack(taken);
    }

    @Override
    void settle(Answer taken, long cost, Deadline.Call call) {
        RedisScript.result(script.startSettling(taken, cost), call);
    }

    @Override
    BucketSnapshot snapshot(Charge charge, Deadline.Call call) {
        return script.snapshot(charge, RedisScript.result(script.startLook(List.of(charge), Timing.AT_ONCE), call));
    }

    @Override
    void reset(Charge charge, Deadline.Call call) {
        call.await(redis.get().del(script.key(charge)).toCompletableFuture());
    }
}
