package io.ratelimit.redis;

import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisScript.Running;
import io.ratelimit.redis.RedisScript.ScriptReply;
import io.ratelimit.redis.RedisScript.Started;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.inflight.RegisterStore;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * A store that counts by a script in Redis. On a single server one script call handles all charges, all or nothing. A
 * cluster needs a {@linkplain BucketByBucket call for each bucket}. Thread-safe.
 */
final class RedisScriptBucketStore extends RedisBucketStore implements LeasingBucketStore, RegisterStore {

    private static final Log logger = LogFactory.getLog(RedisScriptBucketStore.class);

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final ScriptCalls script;
    private final CombinedTakes combined;
    private final RedisRegisters registers;
    private volatile boolean oneKeyPerScript;

    /** The takes that share calls; null if each has calls of its own. */
    private volatile @Nullable GatheredTakes gathered;

    /**
     * @param oneKeyPerScript whether Redis is a cluster
     * @param clock this machine's, which doesn't decide: it estimates the server's time between two replies
     */
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
        this.combined = new CombinedTakes(script, charge -> startTake(List.of(charge), List.of(), Timing.AT_ONCE));
        this.registers = new RedisRegisters(redis, keys, time, clock);
    }

    /** Has takes of any keys that come at the same time share a call, which the thread of the connection sends. */
    RedisScriptBucketStore gathering(Supplier<Executor> sender) {
        gathered = oneKeyPerScript ? null : new GatheredTakes(script, sender);
        return this;
    }

    ScriptCalls script() {
        return script;
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
        if (charges.size() == 1
                && leases.isEmpty()
                && timing == Timing.AT_ONCE
                && charges.get(0).share() == null) {
            return Decision.of(List.of(combined.take(charges.get(0), call)));
        }
        if (!oneKeyPerScript) {
            try {
                return Decision.of(charges.isEmpty() ? List.of() : takeTogether(charges, leases, timing, call));
            } catch (BackendException failed) {
                rethrowUnlessCluster(failed);
            }
        }
        return new BucketByBucket(script, call).take(charges, leases, timing);
    }

    private List<Answer> takeTogether(
            List<Charge> charges, List<LeaseRequest> leases, Timing timing, Deadline.Call call) {
        ScriptReply reply = RedisScript.result(startTake(charges, leases, timing), call);
        return script.taken(charges, leases, timing, reply);
    }

    private Started startTake(List<Charge> charges, List<LeaseRequest> leases, Timing timing) {
        GatheredTakes sharing = timing == Timing.AT_ONCE ? gathered : null;
        return sharing == null ? script.startTake(charges, leases, timing) : sharing.start(charges, leases);
    }

    /** Detects a cluster by its error, and throws any other failure. */
    private void rethrowUnlessCluster(BackendException failed) {
        Throwable cause = failed.getCause();
        if (cause == null || !RedisFailures.isCrossSlot(cause)) {
            throw failed;
        }
        if (!oneKeyPerScript) {
            oneKeyPerScript = true;
            gathered = null;
            logger.warn("Redis is a cluster behind a single address: from now on there is one script call for each"
                    + " bucket. Configure the cluster by 'spring.data.redis.cluster.nodes'.");
        }
    }

    @Override
    public BucketSnapshot lease(LeaseRequest lease) {
        return call(call -> script.lease(lease, call));
    }

    @Override
    public boolean keepsShares(ThrottlePolicy policy) {
        return true;
    }

    @Override
    public CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
        return registers.set(key, claim, timeToLive);
    }

    @Override
    public boolean carriesClaims() {
        return !oneKeyPerScript;
    }

    @Override
    public Decision take(List<Charge> charges, List<CarriedClaim> claims, Duration timeToLive) {
        return call(call -> {
            try {
                return script.take(charges, claims, timeToLive, registers, call);
            } catch (BackendException failed) {
                rethrowUnlessCluster(failed);
                claims.forEach(CarriedClaim::withdraw);
                return take(charges, List.of(), Timing.AT_ONCE, call);
            }
        });
    }

    @Override
    void restart() {
        registers.restart();
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
        call.await(redis.get().del(script.keysToDelete(charge)).toCompletableFuture());
    }

    /**
     * Takes from several buckets of a cluster, which allows one key for each script. The script is called for one bucket after
     * the other, in the order of the charges; when a bucket denies, tokens of the earlier buckets are given back if possible.
     */
    private record BucketByBucket(ScriptCalls script, Deadline.Call call) {

        Decision take(List<Charge> charges, List<LeaseRequest> leases, Timing timing) {
            Answer[] answers = new Answer[charges.size()];
            for (int i = 0; i < answers.length; i++) {
                List<Answer> earlier = Arrays.asList(answers).subList(0, i);
                answers[i] = takeOrGiveBack(charges.get(i), leases, earlier, timing);
                if (!answers[i].allowed()) {
                    return denied(charges, answers, i, timing);
                }
            }
            return Decision.of(List.of(answers));
        }

        /** Takes from one bucket. If that fails, gives back the tokens of the earlier buckets without waiting for the reply. */
        private Answer takeOrGiveBack(Charge charge, List<LeaseRequest> leases, List<Answer> earlier, Timing timing) {
            LeaseRequest lease = LeaseRequest.find(leases, charge);
            try {
                List<Charge> single = List.of(charge);
                List<LeaseRequest> requests = lease == null ? List.of() : List.of(lease);
                ScriptReply reply = RedisScript.result(script.startTake(single, requests, timing), call);
                return script.taken(single, requests, timing, reply).get(0);
            } catch (BackendException failed) {
                startGivingBack(earlier);
                throw failed;
            }
        }

        /**
         * Gives back the tokens that were taken before one bucket denied, and looks at the other buckets. A server executes the
         * commands of a connection in order, so the looks see the tokens that were given back. If a command fails, the denial
         * still holds; buckets that can't be seen are left out.
         */
        private Decision denied(List<Charge> charges, Answer[] answers, int denied, Timing timing) {
            List<Running> gives = startGivingBack(Arrays.asList(answers).subList(0, denied));
            Map<Integer, Running> looks = new HashMap<>();
            for (int i = 0; i < answers.length; i++) {
                if (i != denied) {
                    looks.put(i, script.startLook(List.of(charges.get(i)), timing));
                }
            }
            gives.forEach(this::resultOrNull);
            List<Answer> seen = new ArrayList<>(answers.length);
            for (int i = 0; i < answers.length; i++) {
                Running look = looks.get(i);
                ScriptReply reply = look == null ? null : resultOrNull(look);
                if (look == null) {
                    seen.add(answers[i]);
                } else if (reply != null) {
                    seen.add(script.seen(charges.get(i), timing, reply));
                }
            }
            return Decision.of(seen);
        }

        private @Nullable ScriptReply resultOrNull(Running running) {
            try {
                return RedisScript.result(running, call);
            } catch (BackendException failed) {
                return null;
            }
        }

        void giveBack(List<Answer> taken) {
            startGivingBack(taken).forEach(give -> RedisScript.result(give, call));
        }

        /** Starts one call for each answer, the last answer first: if two takes are from one bucket, the second is due later. */
        private List<Running> startGivingBack(List<Answer> taken) {
            List<Running> gives = new ArrayList<>(taken.size());
            for (int i = taken.size() - 1; i >= 0; i--) {
                gives.add(script.startGivingBack(List.of(taken.get(i))));
            }
            return gives;
        }
    }
}
