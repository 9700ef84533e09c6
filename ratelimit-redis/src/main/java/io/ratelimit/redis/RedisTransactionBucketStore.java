package io.ratelimit.redis;

import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A store that counts in this process, for servers that don't allow scripts. It reads the buckets and writes them in a
 * transaction, which Redis discards if another call wrote to a bucket meanwhile. A discarded call tries again until the
 * deadline, and then fails. The values have another form than those of {@link RedisScriptBucketStore}, and keys
 * of their own. Thread-safe.
 */
final class RedisTransactionBucketStore extends RedisBucketStore implements LeasingBucketStore {

    private final DedicatedConnections connections;
    private final RedisKeys keys;
    private final LongSupplier time;

    RedisTransactionBucketStore(
            DedicatedConnections connections,
            RedisKeys keys,
            Deadline deadline,
            FailureJudge judge,
            LongSupplier time) {
        super(deadline, judge);
        this.connections = connections;
        this.keys = keys;
        this.time = time;
    }

    @Override
    void prepare(Deadline.Call call) {
        connections.openAll(call);
    }

    @Override
    Decision take(List<Charge> charges, Timing timing, Deadline.Call call) {
        return with(call, redis -> timing == Timing.AHEAD ? redis.reserve(charges) : redis.take(charges));
    }

    @Override
    public Decision take(List<Charge> charges, List<LeaseRequest> leases) {
        return call(call -> with(call, redis -> redis.take(charges, leases)));
    }

    @Override
    public BucketSnapshot lease(LeaseRequest lease) {
        return call(call -> with(call, redis -> redis.lease(lease)));
    }

    @Override
    void giveBack(List<Answer> taken, Deadline.Call call) {
        with(call, redis -> {
            redis.giveBack(taken);
            return true;
        });
    }

    @Override
    void settle(Answer taken, long cost, Deadline.Call call) {
        with(call, redis -> redis.settle(taken, cost));
    }

    @Override
    BucketSnapshot snapshot(Charge charge, Deadline.Call call) {
        return with(call, redis -> redis.snapshot(charge));
    }

    @Override
    void reset(Charge charge, Deadline.Call call) {
        connections.with(
                call,
                connection -> call.await(
                        connection.async().del(keys.key(BucketName.of(charge))).toCompletableFuture()));
    }

    private <T> T with(Deadline.Call call, Function<Transactions, T> work) {
        return connections.with(call, connection -> {
            Transactions transactions = new Transactions(connection, call);
            try {
                T result = work.apply(transactions);
                transactions.end();
                return result;
            } catch (BackendException failed) {
                transactions.abandon();
                throw failed;
            }
        });
    }

    /** The values of buckets, on a connection that one call has. */
    private final class Transactions extends CompareAndSetBucketStore {

        private final StatefulRedisConnection<byte[], byte[]> connection;
        private final RedisAsyncCommands<byte[], byte[]> redis;
        private final Deadline.Call call;
        private boolean watching;
        private long began;

        Transactions(StatefulRedisConnection<byte[], byte[]> connection, Deadline.Call call) {
            super(Duration.ofNanos(Math.max(call.leftNanos(), 0)));
            this.connection = connection;
            this.redis = connection.async();
            this.call = call;
        }

        /** Releases the keys of a call that wrote nothing. */
        void end() {
            if (watching) {
                call.await(redis.unwatch().toCompletableFuture());
            }
        }

        /** Releases the keys of a call that failed before it wrote. The reply doesn't matter. */
        void abandon() {
            if (watching) {
                redis.unwatch();
            }
        }

        @Override
        protected Reading read(List<BucketName> buckets) {
            began = System.nanoTime();
            watching = true;
            List<byte[]> named = buckets.stream().map(keys::key).toList();
            TimedArguments watch = new TimedArguments();
            named.forEach(watch::addKey);
            CompletableFuture<?> watched = redis.dispatch(
                            CommandType.WATCH, new StatusOutput<>(ByteArrayCodec.INSTANCE), watch)
                    .toCompletableFuture();
            CompletableFuture<List<byte[]>> clock = redis.time().toCompletableFuture();
            List<CompletableFuture<byte[]>> replies = named.stream()
                    .map(key -> redis.get(key).toCompletableFuture())
                    .toList();
            call.await(watched, watch::sentAt);
            long now = now(call.await(clock));
            List<byte[]> values = new ArrayList<>(replies.size());
            replies.forEach(reply -> values.add(call.await(reply)));
            return new Reading(now, values);
        }

        private long now(List<byte[]> clock) {
            long testTime = time.getAsLong();
            return testTime != SERVER_TIME ? testTime : 1_000_000 * number(clock.get(0)) + number(clock.get(1));
        }

        private static long number(byte[] digits) {
            return Long.parseLong(new String(digits, StandardCharsets.US_ASCII));
        }

        @Override
        protected boolean compareAndSet(List<Change> changes) {
            watching = false;
            redis.multi();
            List<CompletableFuture<?>> writes = new ArrayList<>(changes.size());
            TimedArguments first = new TimedArguments();
            changes.forEach(change -> writes.add(write(change, writes.isEmpty() ? first : new TimedArguments())));
            CompletableFuture<TransactionResult> committed = redis.exec().toCompletableFuture();
            try {
                boolean written = !call.await(committed, first::sentAt).wasDiscarded();
                BackendException failure = written ? failure(writes) : null;
                if (failure != null) {
                    throw failure;
                }
                if (!written) {
                    call.spentInProcess(began);
                }
                return written;
            } catch (BackendException failed) {
                if (!RedisFailures.isDiscarded(failed)) {
                    connection.closeAsync(); // the transaction may be open
                }
                BackendException reason = failed.isMisconfiguration() ? failure(writes) : null;
                throw reason == null ? failed : reason;
            }
        }

        private CompletableFuture<?> write(Change change, TimedArguments arguments) {
            byte[] value = change.after();
            arguments.addKey(keys.key(change.bucket()));
            if (value == null) {
                return redis.dispatch(CommandType.DEL, new IntegerOutput<>(ByteArrayCodec.INSTANCE), arguments)
                        .toCompletableFuture();
            }
            arguments.addValue(value).add("PX").add(change.timeToLive().toMillis());
            return redis.dispatch(CommandType.SET, new StatusOutput<>(ByteArrayCodec.INSTANCE), arguments)
                    .toCompletableFuture();
        }

        /** Returns the error of the first write that Redis didn't queue or didn't execute; null if there is none. */
        private static @Nullable BackendException failure(List<CompletableFuture<?>> writes) {
            for (CompletableFuture<?> write : writes) {
                if (write.isCompletedExceptionally()) {
                    return RedisFailures.of(
                            write.handle((result, failure) -> failure).join());
                }
            }
            return null;
        }

        @Override
        protected BackendException forestalled() {
            return new CongestedException("other calls were always first to write to a bucket in Redis", null);
        }
    }
}
