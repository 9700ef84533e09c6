package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** The buckets of an application in its Redis, with the connections that they need. Thread-safe. */
public final class RedisBuckets implements AutoCloseable {

    /** So much that instances that start at once don't deny each other the test. */
    private static final ThrottlePolicy SELF_TEST = ThrottlePolicy.of("self-test", BucketSpec.of("100000/1s"));

    /** Of a bucket that no policy has, also none of that name. */
    static final Charge NOBODYS = Charge.of(SELF_TEST, Keys.reserved(""), 1);

    private static final int WARM_UPS = 100;

    private static final Duration PATIENCE_AT_START = Duration.ofSeconds(3);

    private final RedisConnections connections;
    private final RedisBucketStore store;
    private final BucketStore withinDeadline;

    private RedisBuckets(RedisConnections connections, RedisBucketStore store, RequestDeadline request) {
        this.connections = connections;
        this.store = store;
        this.withinDeadline = new WithinDeadline(store, request, connections::failed);
    }

    /**
     * Buckets that are taken from by a script.
     *
     * @param application where Redis is
     * @param prefix of all keys
     * @param secret of the hash in keys; empty for none
     */
    public static RedisBuckets byScript(
            LettuceConnectionFactory application, String prefix, String secret, RequestDeadline request) {
        RedisConnections connections = RedisConnections.forScripts(application);
        return new RedisBuckets(
                connections, RedisBucketStore.script(connections, prefix, secret, PATIENCE_AT_START), request);
    }

    /**
     * Buckets that are taken from by optimistic transactions, where scripts are not allowed.
     *
     * @param application where Redis is
     * @param prefix of all keys
     * @param secret of the hash in keys; empty for none
     * @throws IllegalArgumentException if it is a cluster
     */
    public static RedisBuckets byTransaction(
            LettuceConnectionFactory application, String prefix, String secret, RequestDeadline request) {
        RedisConnections connections = RedisConnections.forTransactions(application);
        return new RedisBuckets(
                connections, RedisBucketStore.transaction(connections, prefix, secret, PATIENCE_AT_START), request);
    }

    /** How long a call of a policy may wait at most, whatever the policy says: so far ahead tokens can be counted. */
    public static Duration longestWait(ThrottlePolicy policy) {
        return Stream.concat(Stream.of(policy.spec()), policy.tiers().values().stream())
                .map(spec -> RedisTicks.of(spec).longestWait())
                .min(Comparator.naturalOrder())
                .orElseThrow();
    }

    public BucketStore store() {
        return withinDeadline;
    }

    /**
     * Connects, and takes from a bucket as requests will, which also loads the script; takes a few seconds at most.
     *
     * @throws BackendException if that fails
     */
    public void selfTest() {
        Deadline deadline = Deadline.in(PATIENCE_AT_START);
        deadline.await(connections.connect());
        store.prepare(deadline);
        Decision decision = store.take(List.of(NOBODYS), false, deadline);
        if (!decision.allowed()) {
            throw new BackendException("a bucket that nobody else uses is empty", null, true);
        }
        warmUp(deadline);
    }

    /** The first requests may be many at once, and code that never ran is too slow for their deadline. */
    private void warmUp(Deadline deadline) {
        for (int i = 0; i < WARM_UPS && deadline.left() > 0; i++) {
            store.take(List.of(NOBODYS, NOBODYS), false, deadline);
            store.take(List.of(NOBODYS), false, deadline);
        }
    }

    /**
     * What Redis says of its memory.
     *
     * @throws BackendException if it doesn't
     */
    public RedisMemory memory() {
        Deadline deadline = Deadline.in(PATIENCE_AT_START);
        return RedisMemory.read(
                deadline.await(connections.shared().info("memory").toCompletableFuture()));
    }

    @Override
    public void close() {
        connections.close();
    }
}
