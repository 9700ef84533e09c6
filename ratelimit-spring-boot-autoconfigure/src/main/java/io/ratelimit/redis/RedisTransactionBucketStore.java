package io.ratelimit.redis;

import io.lettuce.core.RedisFuture;
import io.lettuce.core.SetArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * Buckets in Redis, counted here: read, and written if nobody wrote them meanwhile, for servers on which scripts are not
 * allowed. Who was not first tries again until the deadline, and then has failed: that is no answer. It keeps buckets as
 * {@link RedisScriptBucketStore} does, so both may be used at once.
 */
public final class RedisTransactionBucketStore extends RedisBucketStore {

    private final OwnConnections connections;
    private final LongSupplier time;

    /**
     * @param time {@link #SERVER_TIME}, or in tests a time in microseconds
     */
    RedisTransactionBucketStore(OwnConnections connections, RedisKeys keys, Duration timeout, LongSupplier time) {
        super(keys, timeout);
        this.connections = connections;
        this.time = time;
    }

    /** Buckets as they were read at one moment. */
    private record Reading(long now, Map<ByteBuffer, byte[]> values) {

        RedisBucket bucket(ByteBuffer key, RedisTicks ticks) {
            return RedisBucket.read(values.get(key), ticks, now);
        }

        boolean ranAhead(ByteBuffer key) {
            return RedisBucket.ranAhead(values.get(key), now);
        }
    }

    /** What follows from a reading: an answer, and the buckets to write. */
    private record Change<T>(T answer, Map<ByteBuffer, RedisBucket> buckets) {}

    @Override
    void prepare(Deadline deadline) {
        connections.openAll(deadline);
    }

    @Override
    Decision take(List<Charge> charges, boolean ahead, Deadline deadline) {
        if (charges.isEmpty()) {
            return Decision.of(List.of());
        }
        List<ByteBuffer> keys = charges.stream().map(this::keyOf).toList();
        return transact(keys, deadline, reading -> take(charges, keys, ahead, reading));
    }

    private ByteBuffer keyOf(Charge charge) {
        return ByteBuffer.wrap(key(charge));
    }

    private Change<Decision> take(List<Charge> charges, List<ByteBuffer> keys, boolean ahead, Reading reading) {
        Map<ByteBuffer, RedisBucket> buckets = new LinkedHashMap<>();
        Map<ByteBuffer, RedisBucket> anyway = new LinkedHashMap<>();
        List<RedisBucket> before = new ArrayList<>(charges.size());
        boolean all = true;
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            RedisBucket found = bucket(keys.get(i), ticks(charge), reading, buckets);
            RedisBucket bucket = found.under(ticks(charge));
            boolean changed = bucket != found || bucket.at() > reading.now && reading.ranAhead(keys.get(i));
            if (changed && !buckets.containsKey(keys.get(i))) {
                anyway.put(keys.get(i), bucket);
            }
            boolean has = bucket.has(charge.cost(), waitMicros(charge, ahead));
            before.add(bucket);
            buckets.put(keys.get(i), has ? bucket.take(charge.cost()) : bucket);
            all &= has;
        }
        Decision decision = Decision.of(answers(charges, before, all, ahead, reading.now));
        return new Change<>(decision, all ? buckets : anyway);
    }

    private static RedisBucket bucket(
            ByteBuffer key, RedisTicks ticks, Reading reading, Map<ByteBuffer, RedisBucket> seen) {
        RedisBucket bucket = seen.get(key);
        return bucket != null ? bucket : reading.bucket(key, ticks);
    }

    private List<Answer> answers(List<Charge> charges, List<RedisBucket> before, boolean all, boolean ahead, long now) {
        List<Answer> answers = new ArrayList<>(charges.size());
        for (int i = 0; i < charges.size(); i++) {
            Charge charge = charges.get(i);
            RedisTicks ticks = ticks(charge);
            long missing = before.get(i).missing();
            answers.add(
                    all
                            ? RedisAnswers.taken(charge, ticks, missing, now)
                            : before.get(i).has(charge.cost(), waitMicros(charge, ahead))
                                    ? RedisAnswers.has(charge, ticks, missing, now)
                                    : RedisAnswers.lacks(charge, ticks, missing, ahead, now));
        }
        return answers;
    }

    @Override
    void giveBack(List<Answer> taken, Deadline deadline) {
        List<ByteBuffer> keys =
                taken.stream().map(answer -> keyOf(answer.charge())).toList();
        transact(keys, deadline, reading -> giveBack(taken, keys, reading));
    }

    private Change<Boolean> giveBack(List<Answer> taken, List<ByteBuffer> keys, Reading reading) {
        Map<ByteBuffer, RedisBucket> changed = new LinkedHashMap<>();
        for (int i = keys.size() - 1; i >= 0; i--) { // a second take from a bucket stands behind the first
            Answer answer = taken.get(i);
            RedisTicks ticks = ticks(answer.charge());
            RedisBucket bucket = bucket(keys.get(i), ticks, reading, changed);
            Position due = bucket.ticks().equals(ticks) ? Position.of(answer, ticks) : null;
            RedisBucket after = bucket.giveBack(answer.charge().cost(), due);
            if (after != bucket) {
                changed.put(keys.get(i), after);
            }
        }
        return new Change<>(true, changed);
    }

    @Override
    BucketSnapshot look(Charge charge, Deadline deadline) {
        ByteBuffer key = keyOf(charge);
        RedisTicks ticks = ticks(charge);
        return transact(List.of(key), deadline, reading -> {
            RedisBucket bucket = reading.bucket(key, ticks).under(ticks);
            BucketSnapshot snapshot = RedisAnswers.snapshot(charge, ticks, bucket.missing(), reading.now);
            return new Change<>(snapshot, Map.of());
        });
    }

    @Override
    void forget(Charge charge, Deadline deadline) {
        connections.with(
                deadline, redis -> deadline.await(redis.del(key(charge)).toCompletableFuture()));
    }

    private <T> T transact(List<ByteBuffer> keys, Deadline deadline, Function<Reading, Change<T>> work) {
        return connections.with(deadline, redis -> {
            do {
                Reading reading = read(redis, keys, deadline);
                Change<T> change = work.apply(reading);
                if (write(redis, change.buckets, reading.now, deadline)) {
                    return change.answer;
                }
            } while (deadline.left() > 0);
            throw new BackendException("others were always first to write to a bucket in Redis");
        });
    }

    private Reading read(RedisAsyncCommands<byte[], byte[]> redis, List<ByteBuffer> keys, Deadline deadline) {
        CompletableFuture<?> watched = redis.watch(
                        keys.stream().map(ByteBuffer::array).toArray(byte[][]::new))
                .toCompletableFuture();
        CompletableFuture<List<byte[]>> clock = redis.time().toCompletableFuture();
        List<CompletableFuture<byte[]>> values = new ArrayList<>(keys.size());
        keys.forEach(key -> values.add(redis.get(key.array()).toCompletableFuture()));
        deadline.await(watched);
        long now = now(deadline.await(clock));
        Map<ByteBuffer, byte[]> read = new LinkedHashMap<>();
        for (int i = 0; i < values.size(); i++) {
            byte[] value = deadline.await(values.get(i));
            if (value != null) {
                read.put(keys.get(i), value);
            }
        }
        return new Reading(now, read);
    }

    private long now(List<byte[]> clock) {
        long ofTests = time.getAsLong();
        return ofTests != SERVER_TIME ? ofTests : 1_000_000 * number(clock.get(0)) + number(clock.get(1));
    }

    private static long number(byte[] digits) {
        return Long.parseLong(new String(digits, StandardCharsets.US_ASCII));
    }

    /** Whether nobody had written meanwhile. */
    private static boolean write(
            RedisAsyncCommands<byte[], byte[]> redis,
            Map<ByteBuffer, RedisBucket> buckets,
            long now,
            Deadline deadline) {
        if (buckets.isEmpty()) {
            deadline.await(redis.unwatch().toCompletableFuture());
            return true;
        }
        redis.multi();
        List<CompletableFuture<?>> writes = new ArrayList<>(buckets.size());
        buckets.forEach((key, bucket) -> writes.add(write(redis, key.array(), bucket, now)));
        CompletableFuture<TransactionResult> committed = redis.exec().toCompletableFuture();
        try {
            return !deadline.await(committed).wasDiscarded();
        } catch (MisconfiguredRedisException discarded) {
            throw reason(writes, discarded);
        }
    }

    /** Why the transaction was discarded: what the first write that was not taken in says. */
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
            RedisAsyncCommands<byte[], byte[]> redis, byte[] key, RedisBucket bucket, long now) {
        byte[] value = bucket.value();
        RedisFuture<?> written =
                value == null ? redis.del(key) : redis.set(key, value, SetArgs.Builder.px(bucket.millisToKeep(now)));
        return written.toCompletableFuture();
    }
}
