package io.ratelimit.redis;

import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.redis.RedisAnswers.Receipt;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A store that counts in this process, for servers that don't allow scripts. It reads the buckets and writes them in a
 * transaction, which Redis discards if another call wrote to a bucket meanwhile. A discarded call tries again until the
 * deadline, and then fails. The buckets have the same form as those of {@link RedisScriptBucketStore}, so both stores may be
 * used at the same time. Thread-safe.
 */
final class RedisTransactionBucketStore extends RedisBucketStore {

    private final DedicatedConnections connections;

    RedisTransactionBucketStore(
            DedicatedConnections connections,
            RedisKeys keys,
            Deadline deadline,
            FailureJudge judge,
            LongSupplier time) {
        super(keys, deadline, judge, time);
        this.connections = connections;
    }

    /** The values of buckets at one moment. */
    record Reading(long now, Map<ByteBuffer, byte[]> values) {

        /** Returns the time of a bucket: the server's, or that of the bucket's calendar. */
        long now(@Nullable CalendarClock calendar) {
            return calendar == null ? now : calendar.at(now);
        }

        RedisBucketState bucket(ByteBuffer key, RedisTickScale ticks, @Nullable CalendarClock calendar) {
            return RedisBucketState.read(values.get(key), ticks, now(calendar));
        }

        /** Returns the steps by which the clock was ahead when the value was written, if it has been corrected since. */
        long correctedSteps(ByteBuffer key, @Nullable CalendarClock calendar) {
            return RedisBucketState.correctedSteps(values.get(key), now(calendar));
        }
    }

    /** The result of a call for a reading: the answer, and the buckets to write, each with its time. */
    record Change<T>(T answer, Map<ByteBuffer, Written> buckets) {}

    /**
     * A bucket to write.
     *
     * @param now the time of the bucket's clock
     */
    record Written(RedisBucketState bucket, long now) {}

    @Override
    void prepare(Deadline.Call call) {
        connections.openAll(call);
    }

    @Override
    Decision take(List<Charge> charges, boolean ahead, Deadline.Call call) {
        if (charges.isEmpty()) {
            return Decision.of(List.of());
        }
        List<ByteBuffer> keys = charges.stream().map(this::keyOf).toList();
        return transact(keys, call, reading -> take(charges, keys, ahead, reading));
    }

    private ByteBuffer keyOf(Charge charge) {
        return ByteBuffer.wrap(key(charge));
    }

    Change<Decision> take(List<Charge> charges, List<ByteBuffer> keys, boolean ahead, Reading reading) {
        Map<ByteBuffer, RedisBucketState> buckets = new LinkedHashMap<>();
        Map<ByteBuffer, RedisBucketState> changedAnyway = new LinkedHashMap<>();
        List<RedisBucketState> before = new ArrayList<>(charges.size());
        boolean all = true;
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            CalendarClock calendar = calendar(charge);
            RedisBucketState stored = bucket(keys.get(i), charge, reading, buckets);
            RedisBucketState bucket = stored.under(ticks(charge));
            boolean has = bucket.has(charge.cost(), waitMicros(charge, ahead));
            boolean changed = bucket != stored
                    ? !has
                            && ticks(charge).fits(charge.cost())
                            && bucket.microsUntil(charge.cost()) < stored.microsUntil(charge.cost())
                    : bucket.at() > reading.now(calendar) && reading.correctedSteps(keys.get(i), calendar) > 0;
            if (changed && !buckets.containsKey(keys.get(i))) {
                changedAnyway.put(keys.get(i), bucket);
            }
            before.add(bucket);
            buckets.put(keys.get(i), has ? bucket.take(charge.cost()) : bucket);
            all &= has;
        }
        Decision decision = Decision.of(answers(charges, before, all, ahead, reading));
        return new Change<>(decision, written(charges, keys, all ? buckets : changedAnyway, reading));
    }

    private Map<ByteBuffer, Written> written(
            List<Charge> charges, List<ByteBuffer> keys, Map<ByteBuffer, RedisBucketState> buckets, Reading reading) {
        Map<ByteBuffer, Written> written = new LinkedHashMap<>();
        for (int i = 0; i < keys.size(); i++) {
            RedisBucketState bucket = buckets.get(keys.get(i));
            if (bucket != null) {
                written.put(keys.get(i), new Written(bucket, reading.now(calendar(charges.get(i)))));
            }
        }
        return written;
    }

    private RedisBucketState bucket(
            ByteBuffer key, Charge charge, Reading reading, Map<ByteBuffer, RedisBucketState> seen) {
        RedisBucketState bucket = seen.get(key);
        return bucket != null ? bucket : reading.bucket(key, ticks(charge), calendar(charge));
    }

    private List<Answer> answers(
            List<Charge> charges, List<RedisBucketState> before, boolean all, boolean ahead, Reading reading) {
        List<Answer> answers = new ArrayList<>(charges.size());
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            RedisTickScale ticks = ticks(charge);
            CalendarClock calendar = calendar(charge);
            long now = reading.now(calendar);
            long missing = before.get(i).missingFor(charge.cost());
            long returned = before.get(i).returned();
            answers.add(
                    all
                            ? RedisAnswers.taken(
                                    charge,
                                    ticks,
                                    missing,
                                    returned,
                                    now,
                                    before.get(i).at(),
                                    before.get(i).begun(),
                                    calendar)
                            : before.get(i).has(charge.cost(), waitMicros(charge, ahead))
                                    ? RedisAnswers.available(charge, ticks, missing, now, calendar)
                                    : RedisAnswers.denied(charge, ticks, missing, ahead, now, calendar));
        }
        return answers;
    }

    @Override
    void giveBack(List<Answer> taken, Deadline.Call call) {
        List<ByteBuffer> keys =
                taken.stream().map(answer -> keyOf(answer.charge())).toList();
        transact(keys, call, reading -> giveBack(taken, keys, reading));
    }

    Change<Boolean> giveBack(List<Answer> taken, List<ByteBuffer> keys, Reading reading) {
        Map<ByteBuffer, RedisBucketState> changed = new LinkedHashMap<>();
        for (int i = keys.size() - 1; i >= 0; i--) { // of two takes from one bucket the second is due later
            Answer answer = taken.get(i);
            RedisBucketState bucket = bucket(keys.get(i), answer.charge(), reading, changed);
            RedisBucketState after = giveBack(bucket, answer, 0, keys.get(i), reading);
            if (after != bucket) {
                changed.put(keys.get(i), after);
            }
        }
        List<Charge> charges = taken.stream().map(Answer::charge).toList();
        return new Change<>(true, written(charges, keys, changed, reading));
    }

    private RedisBucketState giveBack(
            RedisBucketState bucket, Answer taken, long kept, ByteBuffer key, Reading reading) {
        Charge charge = taken.charge();
        long given = charge.cost() - kept;
        if (!(taken.receipt() instanceof Receipt receipt)) {
            return bucket.giveBack(given, kept, null);
        }
        long steps = reading.correctedSteps(key, calendar(charge));
        return bucket.ticks().equals(ticks(charge)) ? bucket.giveBack(given, kept, receipt.earlier(steps)) : bucket;
    }

    @Override
    void settle(Answer taken, long cost, Deadline.Call call) {
        ByteBuffer key = keyOf(taken.charge());
        transact(List.of(key), call, reading -> settle(taken, cost, key, reading));
    }

    Change<Boolean> settle(Answer taken, long cost, ByteBuffer key, Reading reading) {
        Charge charge = taken.charge();
        CalendarClock calendar = calendar(charge);
        RedisBucketState bucket = reading.bucket(key, ticks(charge), calendar);
        long more = cost - charge.cost();
        RedisBucketState after = more > 0 ? bucket.owe(more) : giveBack(bucket, taken, cost, key, reading);
        return new Change<>(true, after == bucket ? Map.of() : Map.of(key, new Written(after, reading.now(calendar))));
    }

    @Override
    BucketSnapshot snapshot(Charge charge, Deadline.Call call) {
        ByteBuffer key = keyOf(charge);
        RedisTickScale ticks = ticks(charge);
        return transact(List.of(key), call, reading -> {
            CalendarClock calendar = calendar(charge);
            RedisBucketState bucket = reading.bucket(key, ticks, calendar).under(ticks);
            BucketSnapshot snapshot = RedisAnswers.snapshot(
                    charge, ticks, bucket.missingFor(charge.cost()), reading.now(calendar), calendar);
            return new Change<>(snapshot, Map.of());
        });
    }

    @Override
    void reset(Charge charge, Deadline.Call call) {
        connections.with(call, redis -> call.await(redis.del(key(charge)).toCompletableFuture()));
    }

    private <T> T transact(List<ByteBuffer> keys, Deadline.Call call, Function<Reading, Change<T>> work) {
        Change<T> written = connections.with(call, redis -> tryUntilWritten(redis, keys, call, work));
        if (written == null) {
            throw new CongestedException("other calls were always first to write to a bucket in Redis", null);
        }
        return written.answer;
    }

    /** Returns the written change; null if other calls always wrote first until too little time was left for another round. */
    private <T> @Nullable Change<T> tryUntilWritten(
            RedisAsyncCommands<byte[], byte[]> redis,
            List<ByteBuffer> keys,
            Deadline.Call call,
            Function<Reading, Change<T>> work) {
        long began;
        long took;
        do {
            began = System.nanoTime();
            Reading reading = read(redis, keys, call);
            Change<T> change = work.apply(reading);
            if (write(redis, change.buckets, call)) {
                return change;
            }
            call.spentInProcess(began);
            took = System.nanoTime() - began;
        } while (call.leftNanos() > took);
        return null;
    }

    private Reading read(RedisAsyncCommands<byte[], byte[]> redis, List<ByteBuffer> keys, Deadline.Call call) {
        TimedArguments watch = new TimedArguments();
        keys.forEach(key -> watch.addKey(key.array()));
        CompletableFuture<?> watched = redis.dispatch(
                        CommandType.WATCH, new StatusOutput<>(ByteArrayCodec.INSTANCE), watch)
                .toCompletableFuture();
        CompletableFuture<List<byte[]>> clock = redis.time().toCompletableFuture();
        List<CompletableFuture<byte[]>> values = new ArrayList<>(keys.size());
        keys.forEach(key -> values.add(redis.get(key.array()).toCompletableFuture()));
        call.await(watched, watch::sentAt);
        long now = now(call.await(clock));
        Map<ByteBuffer, byte[]> read = new LinkedHashMap<>();
        for (int i = 0; i < values.size(); i++) {
            byte[] value = call.await(values.get(i));
            if (value != null) {
                read.put(keys.get(i), value);
            }
        }
        return new Reading(now, read);
    }

    private long now(List<byte[]> clock) {
        long testTime = testTime();
        return testTime != SERVER_TIME ? testTime : 1_000_000 * number(clock.get(0)) + number(clock.get(1));
    }

    private static long number(byte[] digits) {
        return Long.parseLong(new String(digits, StandardCharsets.US_ASCII));
    }

    /** Writes buckets. Returns false if another call wrote to one meanwhile, so that nothing was written. */
    private static boolean write(
            RedisAsyncCommands<byte[], byte[]> redis, Map<ByteBuffer, Written> buckets, Deadline.Call call) {
        if (buckets.isEmpty()) {
            call.await(redis.unwatch().toCompletableFuture());
            return true;
        }
        redis.multi();
        List<CompletableFuture<?>> writes = new ArrayList<>(buckets.size());
        TimedArguments first = new TimedArguments();
        buckets.forEach((key, written) ->
                writes.add(write(redis, key.array(), written, writes.isEmpty() ? first : new TimedArguments())));
        CompletableFuture<TransactionResult> committed = redis.exec().toCompletableFuture();
        try {
            return !call.await(committed, first::sentAt).wasDiscarded();
        } catch (BackendException failed) {
            throw failed.isMisconfiguration() ? reason(writes, failed) : failed;
        }
    }

    /** Returns the reason of a discarded transaction: the error of the first write that Redis didn't queue. */
    private static BackendException reason(List<CompletableFuture<?>> writes, BackendException discarded) {
        for (CompletableFuture<?> write : writes) {
            if (write.isCompletedExceptionally()) {
                return RedisFailures.of(
                        write.handle((result, failure) -> failure).join());
            }
        }
        return discarded;
    }

    private static CompletableFuture<?> write(
            RedisAsyncCommands<byte[], byte[]> redis, byte[] key, Written written, TimedArguments arguments) {
        byte[] value = written.bucket.value();
        arguments.addKey(key);
        if (value == null) {
            return redis.dispatch(CommandType.DEL, new IntegerOutput<>(ByteArrayCodec.INSTANCE), arguments)
                    .toCompletableFuture();
        }
        arguments.addValue(value).add("PX").add(written.bucket.millisToKeep(written.now));
        return redis.dispatch(CommandType.SET, new StatusOutput<>(ByteArrayCodec.INSTANCE), arguments)
                .toCompletableFuture();
    }
}
