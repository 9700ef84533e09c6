package io.ratelimit.redis;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.netty.buffer.ByteBuf;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.Deadline;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;

/**
 * A store of buckets in Redis, on the clock of its server. All Redis commands of a call end by one deadline. A call throws a
 * {@link BackendException} if Redis fails or is late: nothing is decided then, but tokens may have been taken. Thread-safe.
 */
abstract class RedisBucketStore implements Deadline.Bounded {

    /** Stands for the time of the server, where tests pass a time of their own. */
    static final long SERVER_TIME = -1;

    /** The longest time of a look or a reset, which operators make: requests may have longer. */
    private static final Duration MAX_OPERATION = Duration.ofMillis(800);

    private final Deadline deadline;
    private final FailureJudge judge;

    /** The time at which a take needs its tokens. */
    enum Timing {

        /** The tokens must be there. */
        AT_ONCE,

        /** The tokens may come within the maximum wait of their charge. */
        AHEAD;

        long waitMicros(Charge charge) {
            return this == AHEAD ? charge.maxWait().toNanos() / 1_000 : 0;
        }
    }

    /** Decides whether a failure is one of Redis or of this process. */
    interface FailureJudge {

        /** @param began when the call began, as {@link System#nanoTime} */
        BackendException judge(BackendException failure, long began);
    }

    RedisBucketStore(Deadline deadline, FailureJudge judge) {
        this.deadline = deadline;
        this.judge = judge;
    }

    /** Returns a store that counts by a script in Redis. */
    static RedisBucketStore script(RedisConnections connections, RedisKeys keys, Deadline deadline) {
        return new RedisScriptBucketStore(
                        connections::shared,
                        keys,
                        deadline,
                        connections::failed,
                        connections.isCluster(),
                        () -> SERVER_TIME,
                        TimeSource.system())
                .gathering(connections::sender);
    }

    /**
     * Returns a store that reads, counts in this process and writes by transactions, for servers that don't allow scripts.
     *
     * @param connections connections to a single server that don't reconnect by themselves
     */
    static RedisBucketStore transaction(RedisConnections connections, RedisKeys keys, Deadline deadline) {
        return new RedisTransactionBucketStore(
                connections.dedicated(), keys, deadline, connections::failed, () -> SERVER_TIME);
    }

    final <T> T call(Function<Deadline.Call, T> work) {
        return call(work, deadline.call(RedisFailures::of));
    }

    private <T> T call(Function<Deadline.Call, T> work, Deadline.Call call) {
        try {
            return work.apply(call);
        } catch (BackendException failure) {
            throw judge.judge(failure, call.began());
        }
    }

    /** Returns the exception for a failed reply that no thread waited for. */
    public final BackendException failure(Throwable failure, long began) {
        return judge.judge(RedisFailures.of(failure), began);
    }

    @Override
    public final Decision take(List<Charge> charges) {
        return call(call -> take(charges, Timing.AT_ONCE, call));
    }

    @Override
    public final Decision reserve(List<Charge> charges) {
        return call(call -> take(charges, Timing.AHEAD, call));
    }

    @Override
    public final void giveBack(List<Answer> taken) {
        call(call -> {
            giveBack(taken, call);
            return true;
        });
    }

    @Override
    public final boolean settle(Answer taken, long cost) {
        return cost == taken.charge().cost()
                || call(call -> {
                    settle(taken, cost, call);
                    return true;
                });
    }

    @Override
    public final BucketSnapshot snapshot(Charge charge) {
        return call(call -> snapshot(charge, call), deadline.call(RedisFailures::of, MAX_OPERATION));
    }

    @Override
    public final void reset(Charge charge) {
        call(
                call -> {
                    reset(charge, call);
                    return true;
                },
                deadline.call(RedisFailures::of, MAX_OPERATION));
    }

    /** Continues after connections were closed, perhaps in a copy of this process. */
    void restart() {}

    /** Opens the connections that calls would have to wait for otherwise. */
    void prepare(Deadline.Call call) {}

    /** Takes all of the charges or none. */
    abstract Decision take(List<Charge> charges, Timing timing, Deadline.Call call);

    abstract void giveBack(List<Answer> taken, Deadline.Call call);

    abstract void settle(Answer taken, long cost, Deadline.Call call);

    abstract BucketSnapshot snapshot(Charge charge, Deadline.Call call);

    abstract void reset(Charge charge, Deadline.Call call);

    /** The arguments of a command, and the moment at which the command was written to the connection. */
    static final class TimedArguments extends CommandArgs<byte[], byte[]> {

        private volatile long sentAt;

        TimedArguments() {
            super(ByteArrayCodec.INSTANCE);
        }

        @Override
        public void encode(ByteBuf buffer) {
            sentAt = System.nanoTime();
            super.encode(buffer);
        }

        /** Returns when the command was written, as {@link System#nanoTime}; 0 if it wasn't yet. */
        long sentAt() {
            return sentAt;
        }
    }
}
