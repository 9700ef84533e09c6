package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.Storage;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * The Redis of an application as the place of its buckets: the bucket store and the connections that it needs.
 * Thread-safe.
 */
public final class RedisStorage implements Storage {

    private static final Charge PROBE = FailoverBucketStore.PROBE_CHARGE;
    private static final int WARM_UPS = 3;
    private static final Duration START_TIMEOUT = Duration.ofSeconds(3);

    private final RedisConnections connections;
    private final RedisBucketStore store;
    private final RedisChanges changes;

    private RedisStorage(
            RedisClientFactory application,
            String prefix,
            String secret,
            Function<RedisConnections, RedisBucketStore> store) {
        this.connections = new RedisConnections(application);
        this.store = store.apply(connections);
        this.changes = new RedisChanges(connections, prefix, secret);
    }

    /**
     * Returns storage that counts by a script in Redis.
     *
     * @param application the Redis of the application
     * @param prefix the beginning of all keys
     * @param secret the key of the hash in Redis keys, and of the HMAC of changes; empty for none
     */
    public static RedisStorage withScripts(
            RedisClientFactory application, String prefix, String secret, Deadline deadline) {
        RedisKeys keys = new RedisKeys(prefix, secret);
        return new RedisStorage(application, prefix, secret, redis -> RedisBucketStore.script(redis, keys, deadline));
    }

    /**
     * Like {@link #withScripts}, for servers that don't allow scripts: the storage counts by optimistic transactions.
     *
     * @throws IllegalArgumentException if Redis is a cluster, where a transaction can't have keys of several nodes
     */
    public static RedisStorage withTransactions(
            RedisClientFactory application, String prefix, String secret, Deadline deadline) {
        if (application.isCluster()) {
            throw new IllegalArgumentException("transactions need a single Redis or Sentinel, not a cluster");
        }
        RedisKeys keys = new RedisKeys(prefix, secret);
        return new RedisStorage(
                application, prefix, secret, redis -> RedisBucketStore.transaction(redis, keys, deadline));
    }

    /** Returns the longest time by which tokens of a policy and its tiers can be taken ahead. */
    public static Duration maxWait(ThrottlePolicy policy) {
        return Stream.concat(Stream.of(policy.spec()), policy.tiers().values().stream())
                .map(spec -> RedisTickScale.of(spec).maxWait())
                .min(Comparator.naturalOrder())
                .orElseThrow();
    }

    @Override
    public BucketStore store() {
        return store;
    }

    @Override
    public ChangeBoard changes() {
        return changes;
    }

    /**
     * Connects, and takes from a bucket as requests will, which also loads the script. It takes a few seconds at most.
     *
     * @throws BackendException if Redis fails
     */
    @Override
    public void selfTest() {
        Deadline.Call call = startCall();
        call.await(connections.connect());
        store.prepare(call);
        Decision decision = store.take(List.of(PROBE), Timing.AT_ONCE, call);
        if (!decision.allowed()) {
            throw new BackendException("the bucket of the self-test is empty", null, true);
        }
        RedisConnections.inBackground(() -> warmUp(startCall()));
    }

    private static Deadline.Call startCall() {
        return Deadline.Call.within(START_TIMEOUT, RedisFailures::of);
    }

    /** Loads the classes that takes from one and from several buckets need, before the first request. */
    private boolean warmUp(Deadline.Call call) {
        for (int i = 0; i < WARM_UPS && call.leftNanos() > 0; i++) {
            store.take(List.of(PROBE, PROBE), Timing.AT_ONCE, call);
            store.take(List.of(PROBE), Timing.AT_ONCE, call);
        }
        return true;
    }

    /**
     * Returns the memory settings of Redis. Fails with a {@link BackendException}, after a few seconds at most, if Redis fails or
     * forbids it.
     */
    public CompletableFuture<Memory> memory() {
        try {
            return connections
                    .shared()
                    .info("memory")
                    .toCompletableFuture()
                    .orTimeout(START_TIMEOUT.toNanos(), TimeUnit.NANOSECONDS)
                    .handle((info, failure) -> {
                        if (failure != null) {
                            throw RedisFailures.of(failure);
                        }
                        return Memory.read(info);
                    });
        } catch (BackendException unconnected) {
            return CompletableFuture.failedFuture(unconnected);
        }
    }

    /**
     * The memory settings of Redis.
     *
     * @param policy the eviction policy when the memory is full, such as noeviction
     * @param bounded whether the memory can become full
     */
    public record Memory(String policy, boolean bounded) {

        private static final String NO_EVICTION = "noeviction";

        /** Reads the reply to INFO. */
        static Memory read(String info) {
            String policy = NO_EVICTION;
            boolean bounded = false;
            for (String line : info.lines().toList()) {
                if (line.startsWith("maxmemory_policy:")) {
                    policy = line.substring(line.indexOf(':') + 1).strip();
                } else if (line.startsWith("maxmemory:")) {
                    bounded = !line.substring(line.indexOf(':') + 1).strip().equals("0");
                }
            }
            return new Memory(policy, bounded);
        }

        /** Returns whether buckets that aren't full may be evicted: every bucket has a time to live. */
        public boolean mayEvict() {
            return bounded && !policy.equals(NO_EVICTION);
        }
    }

    @Override
    public void start() {
        store.restart();
        connections.start();
    }

    @Override
    public void stop() {
        connections.stop();
    }

    @Override
    public void close() {
        connections.close();
    }
}
