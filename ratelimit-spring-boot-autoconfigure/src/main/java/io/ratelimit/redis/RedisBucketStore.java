package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.List;

/**
 * Buckets in Redis, which go by the clock of its server. All that one call does there ends by one deadline. Where Redis
 * doesn't answer in time, or not as it must, a call throws a {@link BackendException}: it has decided nothing, but tokens
 * may have been taken. Thread-safe.
 */
public abstract class RedisBucketStore implements BucketStore {

    /** The time of the server itself. */
    static final long SERVER_TIME = -1;

    private final Duration timeout;
    private final RedisKeys keys;
    private final PerSpec<BucketSpec, RedisTicks> ticks = new PerSpec<>(RedisTicks::of);

    RedisBucketStore(RedisKeys keys, Duration timeout) {
        this.keys = keys;
        this.timeout = timeout;
    }

    /**
     * Buckets that are counted by a script in Redis.
     *
     * @param prefix what their keys begin with
     * @param secret without which nobody can tell whose a key is; empty for none
     * @param timeout how long all that one call does in Redis may take
     */
    public static RedisBucketStore script(
            RedisConnections connections, String prefix, String secret, Duration timeout) {
        return new RedisScriptBucketStore(
                connections::shared,
                new RedisKeys(prefix, secret),
                timeout,
                connections.isCluster(),
                () -> SERVER_TIME);
    }

    /**
     * Buckets that are read, counted with here, and written by transactions, for servers that allow no scripts.
     *
     * @param connections that don't reconnect by themselves, to a single server
     * @param prefix what their keys begin with
     * @param secret without which nobody can tell whose a key is; empty for none
     * @param timeout how long all that one call does in Redis may take
     */
    public static RedisBucketStore transaction(
            RedisConnections connections, String prefix, String secret, Duration timeout) {
        return new RedisTransactionBucketStore(
                connections.toThemselves(), new RedisKeys(prefix, secret), timeout, () -> SERVER_TIME);
    }

    @Override
    public final Decision take(List<Charge> charges) {
        return take(charges, false, Deadline.in(timeout));
    }

    @Override
    public final Decision reserve(List<Charge> charges) {
        return take(charges, true, Deadline.in(timeout));
    }

    @Override
    public final void giveBack(List<Answer> taken) {
        giveBack(taken, Deadline.in(timeout));
    }

    @Override
    public final BucketSnapshot look(Charge charge) {
        return look(charge, Deadline.in(timeout));
    }

    @Override
    public final void forget(Charge charge) {
        forget(charge, Deadline.in(timeout));
    }

    /** Makes what calls would have to wait for otherwise. */
    void prepare(Deadline deadline) {}

    /**
     * Takes all of the charges or none.
     *
     * @param ahead whether tokens that come within the charges' longest wait are taken ahead
     */
    abstract Decision take(List<Charge> charges, boolean ahead, Deadline deadline);

    abstract void giveBack(List<Answer> taken, Deadline deadline);

    abstract BucketSnapshot look(Charge charge, Deadline deadline);

    abstract void forget(Charge charge, Deadline deadline);

    final byte[] key(Charge charge) {
        return keys.of(charge);
    }

    final RedisTicks ticks(Charge charge) {
        return ticks.of(charge.spec());
    }

    /** How long a charge may wait, in microseconds. */
    static long waitMicros(Charge charge, boolean ahead) {
        return ahead ? charge.maxWait().toNanos() / 1_000 : 0;
    }
}
