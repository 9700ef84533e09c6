package io.ratelimit.redis;

import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisAnswers.Receipt;
import io.ratelimit.redis.RedisScript.Reply;
import io.ratelimit.redis.RedisScript.Running;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.lease.LeasingBucketStore;
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
 * cluster allows one key for each script. The script is then called for one bucket after the other, in the order of the
 * charges; when a bucket denies, tokens of the earlier buckets are given back if possible. Thread-safe.
 */
final class RedisScriptBucketStore extends RedisBucketStore implements LeasingBucketStore {

    private static final Log logger = LogFactory.getLog(RedisScriptBucketStore.class);

    private static final List<LeaseRequest> NO_LEASES = List.of();

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final RedisScript script;
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
        super(keys, deadline, judge, time);
        this.redis = redis;
        this.script = new RedisScript(redis, clock);
        this.oneKeyPerScript = oneKeyPerScript;
        this.combined = new CombinedTakes(sameTakes());
    }

    /** Returns the calls that several takes of the same cost from the same bucket share. */
    CombinedTakes.Calls sameTakes() {
        return new SameTakes();
    }

    private final class SameTakes implements CombinedTakes.Calls {

        @Override
        public Running start(Charge charge, int times) {
            if (times == 1) {
                return RedisScriptBucketStore.this.start(Operation.TAKE, List.of(charge), false);
            }
            RedisTickScale ticks = ticks(charge);
            long maxTokens = charge.cost() * Math.min(times, ticks.capacity() / charge.cost());
            byte[] arguments = RedisScript.argumentsToLease(ticks, charge.cost(), 0, maxTokens);
            return RedisScriptBucketStore.this.start(Operation.LEASE, List.of(charge), new byte[][] {arguments});
        }

        @Override
        public int decided(int takes, Reply reply) {
            return tookOnce(reply) ? 1 : takes;
        }

        /**
         * Returns whether a call took the cost only once, as from a bucket with promises. It decides only its first
         * take.
         */
        private static boolean tookOnce(Reply reply) {
            return reply.missing(0) >= 0 && reply.leased(0) == 0;
        }

        @Override
        public Answer answer(Charge charge, int place, Reply reply) {
            if (tookOnce(reply)) {
                return RedisScriptBucketStore.this.answer(charge, 0, reply, true, false);
            }
            RedisTickScale ticks = ticks(charge);
            CalendarClock calendar = calendar(charge);
            long now = now(reply, 0, calendar);
            long price = ticks.price(charge.cost());
            long missing = reply.missing(0) < 0 ? -reply.missing(0) - 1 : reply.missing(0);
            long allowed = reply.leased(0) / price;
            return place < allowed
                    ? RedisAnswers.taken(
                            charge,
                            ticks,
                            missing - (allowed - place) * price,
                            reply.returned(0),
                            now,
                            reply.at(0),
                            reply.begun(0),
                            calendar)
                    : RedisAnswers.denied(charge, ticks, missing, false, now, calendar);
        }
    }

    @Override
    Decision take(List<Charge> charges, boolean ahead, Deadline.Call call) {
        return take(charges, NO_LEASES, ahead, call);
    }

    @Override
    public Decision take(List<Charge> charges, List<LeaseRequest> leases) {
        return call(call -> take(charges, leases, false, call));
    }

    private Decision take(List<Charge> charges, List<LeaseRequest> leases, boolean ahead, Deadline.Call call) {
        if (charges.isEmpty()) {
            return Decision.of(List.of());
        }
        if (charges.size() == 1 && leases.isEmpty() && !ahead) {
            return Decision.of(List.of(combined.take(charges.get(0), call)));
        }
        if (oneKeyPerScript || charges.size() == 1) {
            return takeOneByOne(charges, leases, ahead, call);
        }
        try {
            return Decision.of(runTake(charges, leases, ahead, call));
        } catch (BackendException failed) {
            rethrowUnlessCluster(failed);
            return takeOneByOne(charges, leases, ahead, call);
        }
    }

    @Override
    public BucketSnapshot lease(LeaseRequest lease) {
        return call(call -> {
            Charge charge = lease.charge();
            byte[] arguments = leaseArguments(lease, 0);
            Reply reply = RedisScript.result(start(Operation.LEASE, List.of(charge), new byte[][] {arguments}), call);
            reportGrant(lease, reply, 0);
            long missing = reply.missing(0) >= 0 ? reply.missing(0) : -reply.missing(0) - 1;
            return RedisAnswers.snapshot(charge, ticks(charge), missing, reply.now(0), null);
        });
    }

    private List<Answer> runTake(List<Charge> charges, List<LeaseRequest> leases, boolean ahead, Deadline.Call call) {
        return leases.isEmpty() ? run(Operation.TAKE, charges, ahead, call) : runLease(charges, leases, call);
    }

    private List<Answer> runLease(List<Charge> charges, List<LeaseRequest> leases, Deadline.Call call) {
        byte[][] arguments = new byte[charges.size()][];
        for (int i = 0; i < arguments.length; i++) {
            Charge charge = charges.get(i);
            LeaseRequest lease = find(leases, charge);
            arguments[i] = lease == null
                    ? RedisScript.argumentsToLease(ticks(charge), charge.cost(), 0, 0)
                    : leaseArguments(lease, charge.cost());
        }
        Reply reply = RedisScript.result(start(Operation.LEASE, charges, arguments), call);
        List<Answer> answers = answers(Operation.LEASE, charges, false, reply);
        if (answers.stream().allMatch(Answer::allowed)) {
            for (int i = 0; i < arguments.length; i++) {
                LeaseRequest lease = find(leases, charges.get(i));
                if (lease != null) {
                    reportGrant(lease, reply, i);
                }
            }
        }
        return answers;
    }

    private static @Nullable LeaseRequest find(List<LeaseRequest> leases, Charge charge) {
        for (int i = 0; i < leases.size(); i++) {
            if (leases.get(i).charge() == charge) {
                return leases.get(i);
            }
        }
        return null;
    }

    private byte[] leaseArguments(LeaseRequest lease, long cost) {
        long micros = (lease.charge().policy().lease().toNanos() + 999) / 1_000;
        return RedisScript.argumentsToLease(ticks(lease.charge()), cost, micros, lease.maxTokens());
    }

    /** Passes the lease to its request, if the script took one. */
    private void reportGrant(LeaseRequest lease, Reply reply, int i) {
        if (reply.leased(i) > 0) {
            RedisTickScale ticks = ticks(lease.charge());
            long now = reply.now(i);
            long missing = reply.missing(i);
            long returned = reply.returned(i);
            long at = reply.at(i);
            long begun = reply.begun(i);
            lease.grant(new Grant(
                    ticks.tokens(reply.leased(i)),
                    RedisAnswers.snapshot(lease.charge(), ticks, missing, now, null),
                    now,
                    cost -> RedisAnswers.receipt(ticks, cost, missing, returned, at, begun)));
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

    private Decision takeOneByOne(List<Charge> charges, List<LeaseRequest> leases, boolean ahead, Deadline.Call call) {
        Answer[] answers = new Answer[charges.size()];
        for (int i = 0; i < answers.length; i++) {
            answers[i] = takeOrGiveBack(
                    charges.get(i), leases, Arrays.asList(answers).subList(0, i), ahead, call);
            if (!answers[i].allowed()) {
                return denied(charges, answers, i, ahead, call);
            }
        }
        return Decision.of(List.of(answers));
    }

    /** Takes from one bucket. If that fails, gives back the tokens of the earlier buckets without waiting for the reply. */
    private Answer takeOrGiveBack(
            Charge charge, List<LeaseRequest> leases, List<Answer> taken, boolean ahead, Deadline.Call call) {
        LeaseRequest lease = find(leases, charge);
        try {
            return runTake(List.of(charge), lease == null ? NO_LEASES : List.of(lease), ahead, call)
                    .get(0);
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
        LEASE,
        LOOK,
        GIVE;

        private final byte[] word = name().toLowerCase(Locale.ROOT).getBytes(StandardCharsets.US_ASCII);
    }

    private List<Answer> run(Operation operation, List<Charge> charges, boolean ahead, Deadline.Call call) {
        return answers(operation, charges, ahead, RedisScript.result(start(operation, charges, ahead), call));
    }

    private Running start(Operation operation, List<Charge> charges, boolean ahead) {
        byte[][] arguments = new byte[charges.size()][];
        for (int i = 0; i < arguments.length; i++) {
            Charge charge = charges.get(i);
            arguments[i] = script.argumentsToTake(ticks(charge), charge.cost(), waitMicros(charge, ahead));
        }
        return start(operation, charges, arguments);
    }

    private Running start(Operation operation, List<Charge> charges, byte[][] arguments) {
        byte[][] keys = new byte[arguments.length][];
        for (int i = 0; i < keys.length; i++) {
            keys[i] = key(charges.get(i));
        }
        return script.start((to, serverMicros) -> {
            to.add(keys.length).addKeys(keys);
            for (int i = 0; i < keys.length; i++) {
                CalendarClock calendar = calendar(charges.get(i));
                to.add(
                        calendar == null
                                ? arguments[i]
                                : RedisScript.withCalendar(calendar, serverMicros, arguments[i]));
            }
            long now = testTime();
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
            return RedisScript.result(running, call);
        } catch (BackendException failed) {
            return null;
        }
    }

    private List<Answer> answers(Operation operation, List<Charge> charges, boolean ahead, Reply reply) {
        boolean taken = operation != Operation.LOOK;
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
        CalendarClock calendar = calendar(charge);
        long now = now(reply, i, calendar);
        long missing = reply.missing(i);
        if (missing < 0) {
            return RedisAnswers.denied(charge, ticks, -missing - 1, ahead, now, calendar);
        }
        long before =
                missing - Math.max(reply.leased(i), ticks.price(charge.cost())); // leased tokens are still available
        return taken
                ? RedisAnswers.taken(
                        charge, ticks, before, reply.returned(i), now, reply.at(i), reply.begun(i), calendar)
                : RedisAnswers.available(charge, ticks, before, now, calendar);
    }

    /** Returns the time of a bucket. If it is that of a calendar, records the server's time. */
    private long now(Reply reply, int i, @Nullable CalendarClock calendar) {
        long now = reply.now(i);
        if (calendar != null) {
            script.setServerMicros(calendar.momentOf(now));
        }
        return now;
    }

    @Override
    void giveBack(List<Answer> taken, Deadline.Call call) {
        if (oneKeyPerScript || taken.size() == 1) {
            startGivingBackEach(taken).forEach(give -> RedisScript.result(give, call));
            return;
        }
        try {
            RedisScript.result(startGivingBack(taken), call);
        } catch (BackendException failed) {
            rethrowUnlessCluster(failed);
            startGivingBackEach(taken).forEach(give -> RedisScript.result(give, call));
        }
    }

    /** Starts one call for each answer, the last answer first. */
    private List<Running> startGivingBackEach(List<Answer> taken) {
        List<Running> gives = new ArrayList<>(taken.size());
        for (int i = taken.size() - 1; i >= 0; i--) { // if two takes are from one bucket, the second is due later
            gives.add(startGivingBack(List.of(taken.get(i))));
        }
        return gives;
    }

    private Running startGivingBack(List<Answer> taken) {
        byte[][] arguments = new byte[taken.size()][];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = argumentsToSettle(taken.get(i), 0);
        }
        return start(Operation.GIVE, taken.stream().map(Answer::charge).toList(), arguments);
    }

    private byte[] argumentsToSettle(Answer taken, long cost) {
        Charge charge = taken.charge();
        RedisTickScale ticks = ticks(charge);
        long rest = charge.cost() - cost;
        return rest < 0
                ? RedisScript.argumentsToOwe(ticks, -rest)
                : RedisScript.argumentsToGiveBack(ticks, rest, cost, (Receipt) taken.receipt());
    }

    @Override
    void settle(Answer taken, long cost, Deadline.Call call) {
        byte[][] arguments = {argumentsToSettle(taken, cost)};
        RedisScript.result(start(Operation.GIVE, List.of(taken.charge()), arguments), call);
    }

    @Override
    BucketSnapshot snapshot(Charge charge, Deadline.Call call) {
        Reply reply = RedisScript.result(start(Operation.LOOK, List.of(charge), false), call);
        RedisTickScale ticks = ticks(charge);
        long missing = reply.missing(0) >= 0 ? reply.missing(0) - ticks.price(charge.cost()) : -reply.missing(0) - 1;
        CalendarClock calendar = calendar(charge);
        return RedisAnswers.snapshot(charge, ticks, missing, now(reply, 0, calendar), calendar);
    }

    @Override
    void reset(Charge charge, Deadline.Call call) {
        call.await(redis.get().del(key(charge)).toCompletableFuture());
    }
}
