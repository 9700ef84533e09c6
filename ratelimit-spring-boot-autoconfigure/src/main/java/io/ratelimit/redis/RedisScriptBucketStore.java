package io.ratelimit.redis;

import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.protocol.CommandArgs;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Buckets in Redis, counted by a script there. On a single server all charges of a call are one script: all or nothing,
 * seen by nobody half done. A cluster allows a script one key: there the buckets are taken from one after the other, in
 * the order of the charges, and given back to as well as can be when one denies.
 */
public final class RedisScriptBucketStore extends RedisBucketStore {

    private static final Log logger = LogFactory.getLog(RedisScriptBucketStore.class);

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final RedisScript script;
    private final LongSupplier time;
    private final ScriptArguments arguments = new ScriptArguments();
    private volatile boolean oneKeyAScript;

    /**
     * @param oneKeyAScript whether it is a cluster
     * @param time {@link #SERVER_TIME}, or in tests a time in microseconds
     */
    RedisScriptBucketStore(
            Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis,
            RedisKeys keys,
            Duration timeout,
            boolean oneKeyAScript,
            LongSupplier time) {
        super(keys, timeout);
        this.redis = redis;
        this.script = new RedisScript(redis);
        this.oneKeyAScript = oneKeyAScript;
        this.time = time;
    }

    /** A call of the script for some buckets. */
    private record Call(Consumer<CommandArgs<byte[], byte[]>> arguments, CompletableFuture<long[]> running) {}

    @Override
    Decision take(List<Charge> charges, boolean ahead, Deadline deadline) {
        if (charges.isEmpty()) {
            return Decision.of(List.of());
        }
        if (oneKeyAScript || charges.size() == 1) {
            return takeOneByOne(charges, ahead, deadline);
        }
        try {
            return Decision.of(ask(Operation.TAKE, charges, ahead, deadline));
        } catch (BackendException failed) {
            learnFrom(failed);
            return takeOneByOne(charges, ahead, deadline);
        }
    }

    private void learnFrom(BackendException failed) {
        Throwable cause = failed.getCause();
        if (cause == null || !RedisFailures.isCrossSlot(cause)) {
            throw failed;
        }
        if (!oneKeyAScript) {
            oneKeyAScript = true;
            logger.warn("Redis turns out to be a cluster behind a single address: from now on each bucket is asked"
                    + " apart. Configure it by 'spring.data.redis.cluster.nodes'.");
        }
    }

    private Decision takeOneByOne(List<Charge> charges, boolean ahead, Deadline deadline) {
        Answer[] answers = new Answer[charges.size()];
        for (int i = 0; i < answers.length; i++) {
            answers[i] = takeOrGiveBack(charges.get(i), Arrays.asList(answers).subList(0, i), ahead, deadline);
            if (!answers[i].allowed()) {
                return denied(charges, answers, i, ahead, deadline);
            }
        }
        return Decision.of(List.of(answers));
    }

    /** Where that fails, what was taken before is given back, if it can be, and nobody waits for it. */
    private Answer takeOrGiveBack(Charge charge, List<Answer> before, boolean ahead, Deadline deadline) {
        try {
            return ask(Operation.TAKE, List.of(charge), ahead, deadline).get(0);
        } catch (BackendException failed) {
            startGivingBackEach(before);
            throw failed;
        }
    }

    /**
     * Gives back what was taken before one denied, and looks at the others: a server serves a connection in order, so what
     * it is asked last is what all that was given back left. Where either fails the denial stands, which is known; who
     * can't be seen is left out.
     */
    private Decision denied(List<Charge> charges, Answer[] answers, int denied, boolean ahead, Deadline deadline) {
        List<Call> back = startGivingBackEach(Arrays.asList(answers).subList(0, denied));
        Map<Integer, Call> looks = new HashMap<>();
        for (int i = 0; i < answers.length; i++) {
            if (i != denied) {
                looks.put(i, start(Operation.LOOK, List.of(charges.get(i)), ahead));
            }
        }
        back.forEach(call -> resultIfAny(call, deadline));
        List<Answer> said = new ArrayList<>(answers.length);
        for (int i = 0; i < answers.length; i++) {
            Call look = looks.get(i);
            said.addAll(look == null ? List.of(answers[i]) : seen(charges.get(i), look, ahead, deadline));
        }
        return Decision.of(said);
    }

    private List<Answer> seen(Charge charge, Call look, boolean ahead, Deadline deadline) {
        long[] reply = resultIfAny(look, deadline);
        return reply == null ? List.of() : answers(Operation.LOOK, List.of(charge), ahead, reply);
    }

    private enum Operation {
        TAKE,
        LOOK,
        GIVE;

        private final byte[] word = name().toLowerCase(Locale.ROOT).getBytes(StandardCharsets.US_ASCII);
    }

    private List<Answer> ask(Operation operation, List<Charge> charges, boolean ahead, Deadline deadline) {
        return answers(operation, charges, ahead, result(start(operation, charges, ahead), deadline));
    }

    private Call start(Operation operation, List<Charge> charges, boolean ahead) {
        byte[][] keys = new byte[charges.size()][];
        byte[][] wanted = new byte[keys.length][];
        for (int i = 0; i < keys.length; i++) {
            Charge charge = charges.get(i);
            keys[i] = key(charge);
            wanted[i] = arguments.toTake(ticks(charge), charge.cost(), waitMicros(charge, ahead));
        }
        return start(operation, keys, wanted);
    }

    private Call start(Operation operation, byte[][] keys, byte[][] wanted) {
        long now = time.getAsLong();
        return start(to -> {
            to.add(keys.length).addKeys(keys);
            for (byte[] one : wanted) {
                to.add(one);
            }
            if (operation != Operation.TAKE || now != SERVER_TIME) {
                to.add(operation.word);
            }
            if (now != SERVER_TIME) {
                to.add(now);
            }
        });
    }

    private Call start(Consumer<CommandArgs<byte[], byte[]>> arguments) {
        return new Call(arguments, script.start(arguments));
    }

    private long[] result(Call call, Deadline deadline) {
        return script.result(call.running(), call.arguments(), deadline);
    }

    private long @Nullable [] resultIfAny(Call call, Deadline deadline) {
        try {
            return result(call, deadline);
        } catch (BackendException failed) {
            return null;
        }
    }

    private List<Answer> answers(Operation operation, List<Charge> charges, boolean ahead, long[] reply) {
        boolean taken = operation == Operation.TAKE;
        for (int i = 1; i < reply.length; i++) {
            taken &= reply[i] >= 0;
        }
        List<Answer> answers = new ArrayList<>(charges.size());
        for (int i = 0; i < charges.size(); i++) {
            answers.add(answer(charges.get(i), reply[i + 1], taken, ahead, reply[0]));
        }
        return answers;
    }

    private Answer answer(Charge charge, long told, boolean taken, boolean ahead, long now) {
        RedisTicks ticks = ticks(charge);
        if (told < 0) {
            return RedisAnswers.lacks(charge, ticks, -told - 1, ahead, now);
        }
        long before = told - ticks.of(charge.cost());
        return taken ? RedisAnswers.taken(charge, ticks, before, now) : RedisAnswers.has(charge, ticks, before, now);
    }

    @Override
    void giveBack(List<Answer> taken, Deadline deadline) {
        if (oneKeyAScript || taken.size() == 1) {
            startGivingBackEach(taken).forEach(call -> result(call, deadline));
            return;
        }
        try {
            result(startGivingBack(taken), deadline);
        } catch (BackendException failed) {
            learnFrom(failed);
            startGivingBackEach(taken).forEach(call -> result(call, deadline));
        }
    }

    private List<Call> startGivingBackEach(List<Answer> taken) {
        List<Call> calls = new ArrayList<>(taken.size());
        for (int i = taken.size() - 1; i >= 0; i--) { // a second take from a bucket stands behind the first
            calls.add(startGivingBack(List.of(taken.get(i))));
        }
        return calls;
    }

    private Call startGivingBack(List<Answer> taken) {
        byte[][] keys = new byte[taken.size()][];
        byte[][] back = new byte[keys.length][];
        for (int i = 0; i < keys.length; i++) {
            Charge charge = taken.get(i).charge();
            RedisTicks ticks = ticks(charge);
            keys[i] = key(charge);
            back[i] = ScriptArguments.toGiveBack(ticks, charge.cost(), Position.of(taken.get(i), ticks));
        }
        return start(Operation.GIVE, keys, back);
    }

    @Override
    BucketSnapshot look(Charge charge, Deadline deadline) {
        long[] reply = result(start(Operation.LOOK, List.of(charge), false), deadline);
        RedisTicks ticks = ticks(charge);
        long missing = reply[1] >= 0 ? reply[1] - ticks.of(charge.cost()) : -reply[1] - 1;
        return RedisAnswers.snapshot(charge, ticks, missing, reply[0]);
    }

    @Override
    void forget(Charge charge, Deadline deadline) {
        deadline.await(redis.get().del(key(charge)).toCompletableFuture());
    }
}
