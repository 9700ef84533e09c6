package io.ratelimit.redis;

import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.failover.Deadline;
import io.ratelimit.redis.RedisAnswers.Receipt;
import io.ratelimit.redis.RedisScript.Reply;
import io.ratelimit.redis.RedisScript.Running;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * A store that counts by a script in Redis. On a single server one script handles all charges of a call, all or nothing. A
 * cluster allows one key for each script. The buckets are then taken from one by one, in the order of the charges; when one
 * denies, tokens of the earlier buckets are given back if possible. Thread-safe.
 */
final class RedisScriptBucketStore extends RedisBucketStore {

    private static final Log logger = LogFactory.getLog(RedisScriptBucketStore.class);

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final RedisScript script;
    private volatile boolean oneKeyPerScript;

    /** @param oneKeyPerScript whether Redis is a cluster */
    RedisScriptBucketStore(
            Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis,
            RedisKeys keys,
            Deadline deadline,
            FailureJudge judge,
            boolean oneKeyPerScript,
            LongSupplier time) {
        super(keys, deadline, judge, time);
        this.redis = redis;
        this.script = new RedisScript(redis);
        this.oneKeyPerScript = oneKeyPerScript;
    }

    @Override
    Decision take(List<Charge> charges, boolean ahead, Deadline.Call call) {
        if (charges.isEmpty()) {
            return Decision.of(List.of());
        }
        if (oneKeyPerScript || charges.size() == 1) {
            return takeOneByOne(charges, ahead, call);
        }
        try {
            return Decision.of(run(Operation.TAKE, charges, ahead, call));
        } catch (BackendException failed) {
            rethrowUnlessCluster(failed);
            return takeOneByOne(charges, ahead, call);
        }
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

    private Decision takeOneByOne(List<Charge> charges, boolean ahead, Deadline.Call call) {
        Answer[] answers = new Answer[charges.size()];
        for (int i = 0; i < answers.length; i++) {
            answers[i] = takeOrGiveBack(charges.get(i), Arrays.asList(answers).subList(0, i), ahead, call);
            if (!answers[i].allowed()) {
                return denied(charges, answers, i, ahead, call);
            }
        }
        return Decision.of(List.of(answers));
    }

    /** Takes from one bucket. If that fails, gives back the tokens of the earlier buckets without waiting for the reply. */
    private Answer takeOrGiveBack(Charge charge, List<Answer> taken, boolean ahead, Deadline.Call call) {
        try {
            return run(Operation.TAKE, List.of(charge), ahead, call).get(0);
        } catch (BackendException failed) {
            startGivingBackEach(taken);
            throw failed;
        }
    }

    /**
     * Gives back the tokens that were taken before one bucket denied, and looks at the other buckets. A server executes the
     * commands of a connection in order, so the looks see the tokens that were given back. If a command fails, the denial
     * still holds; buckets that can't be seen are left out.
     */
    private Decision denied(List<Charge> charges, Answer[] answers, int denied, boolean ahead, Deadline.Call call) {
        List<Running> gives = startGivingBackEach(Arrays.asList(answers).subList(0, denied));
        Map<Integer, Running> looks = new HashMap<>();
        for (int i = 0; i < answers.length; i++) {
            if (i != denied) {
                looks.put(i, start(Operation.LOOK, List.of(charges.get(i)), ahead));
            }
        }
        gives.forEach(give -> resultOrNull(give, call));
        List<Answer> seen = new ArrayList<>(answers.length);
        for (int i = 0; i < answers.length; i++) {
            Running look = looks.get(i);
            seen.addAll(look == null ? List.of(answers[i]) : answerOf(look, charges.get(i), ahead, call));
        }
        return Decision.of(seen);
    }

    /** Returns the answer of a look; empty if it failed. */
    private List<Answer> answerOf(Running look, Charge charge, boolean ahead, Deadline.Call call) {
        Reply reply = resultOrNull(look, call);
        return reply == null ? List.of() : answers(Operation.LOOK, List.of(charge), ahead, reply);
    }

    private enum Operation {
        TAKE,
        LOOK,
        GIVE;

        private final byte[] word = name().toLowerCase(Locale.ROOT).getBytes(StandardCharsets.US_ASCII);
    }

    private List<Answer> run(Operation operation, List<Charge> charges, boolean ahead, Deadline.Call call) {
        return answers(operation, charges, ahead, script.result(start(operation, charges, ahead), call));
    }

    private Running start(Operation operation, List<Charge> charges, boolean ahead) {
        byte[][] keys = new byte[charges.size()][];
        byte[][] arguments = new byte[keys.length][];
        for (int i = 0; i < keys.length; i++) {
            Charge charge = charges.get(i);
            keys[i] = key(charge);
            arguments[i] = script.argumentsToTake(ticks(charge), charge.cost(), waitMicros(charge, ahead));
        }
        return start(operation, keys, arguments);
    }

    private Running start(Operation operation, byte[][] keys, byte[][] arguments) {
        long now = testTime();
        return script.start(to -> {
            to.add(keys.length).addKeys(keys);
            for (byte[] argument : arguments) {
                to.add(argument);
            }
            if (operation != Operation.TAKE || now != SERVER_TIME) {
                to.add(operation.word);
            }
            if (now != SERVER_TIME) {
                to.add(now);
            }
        });
    }

    private @Nullable Reply resultOrNull(Running running, Deadline.Call call) {
        try {
            return script.result(running, call);
        } catch (BackendException failed) {
            return null;
        }
    }

    private List<Answer> answers(Operation operation, List<Charge> charges, boolean ahead, Reply reply) {
        boolean taken = operation == Operation.TAKE;
        for (int i = 0; i < charges.size(); i++) {
            taken &= reply.missing(i) >= 0;
        }
        List<Answer> answers = new ArrayList<>(charges.size());
        for (int i = 0; i < charges.size(); i++) {
            answers.add(answer(charges.get(i), i, reply, taken, ahead));
        }
        return answers;
    }

    private Answer answer(Charge charge, int i, Reply reply, boolean taken, boolean ahead) {
        RedisTickScale ticks = ticks(charge);
        long now = reply.now();
        long missing = reply.missing(i);
        if (missing < 0) {
            return RedisAnswers.denied(charge, ticks, -missing - 1, ahead, now);
        }
        long before = missing - ticks.of(charge.cost());
        return taken
                ? RedisAnswers.taken(charge, ticks, before, reply.returned(i), now)
                : RedisAnswers.available(charge, ticks, before, now);
    }

    @Override
    void giveBack(List<Answer> taken, Deadline.Call call) {
        if (oneKeyPerScript || taken.size() == 1) {
            startGivingBackEach(taken).forEach(give -> script.result(give, call));
            return;
        }
        try {
            script.result(startGivingBack(taken), call);
        } catch (BackendException failed) {
            rethrowUnlessCluster(failed);
            startGivingBackEach(taken).forEach(give -> script.result(give, call));
        }
    }

    private List<Running> startGivingBackEach(List<Answer> taken) {
        List<Running> gives = new ArrayList<>(taken.size());
        for (int i = taken.size() - 1; i >= 0; i--) { // of two takes from one bucket the second is due later
            gives.add(startGivingBack(List.of(taken.get(i))));
        }
        return gives;
    }

    private Running startGivingBack(List<Answer> taken) {
        byte[][] keys = new byte[taken.size()][];
        byte[][] arguments = new byte[keys.length][];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = key(taken.get(i).charge());
            arguments[i] = argumentsToSettle(taken.get(i), 0);
        }
        return start(Operation.GIVE, keys, arguments);
    }

    private byte[] argumentsToSettle(Answer taken, long cost) {
        Charge charge = taken.charge();
        return RedisScript.argumentsToGiveBack(ticks(charge), charge.cost() - cost, cost, (Receipt) taken.receipt());
    }

    @Override
    void settle(Answer taken, long cost, Deadline.Call call) {
        byte[][] keys = {key(taken.charge())};
        script.result(start(Operation.GIVE, keys, new byte[][] {argumentsToSettle(taken, cost)}), call);
    }

    @Override
    BucketSnapshot snapshot(Charge charge, Deadline.Call call) {
        Reply reply = script.result(start(Operation.LOOK, List.of(charge), false), call);
        RedisTickScale ticks = ticks(charge);
        long missing = reply.missing(0) >= 0 ? reply.missing(0) - ticks.of(charge.cost()) : -reply.missing(0) - 1;
        return RedisAnswers.snapshot(charge, ticks, missing, reply.now());
    }

    @Override
    void reset(Charge charge, Deadline.Call call) {
        call.await(redis.get().del(key(charge)).toCompletableFuture());
    }
}
