package io.ratelimit.redis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.AclSetuserArgs;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.redis.RedisStorage.Memory;
import io.ratelimit.remote.Deadline.CongestedException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The meaning of failures: an outage, a mistake that somebody has to correct, or a busy process. */
@Tag("slow")
class RedisFailuresTests {

    private final TestRedis redis = TestRedis.shared();
    private @Nullable RedisClient client;

    @AfterEach
    void close() {
        if (client != null) {
            client.shutdown();
        }
    }

    private RedisClient client() {
        return client(redis);
    }

    private RedisClient client(TestRedis redis) {
        client = RedisClient.create(RedisURI.create(redis.host(), redis.port()));
        return client;
    }

    @ParameterizedTest
    @CsvSource({
        "TRYAGAIN Multiple keys request during rehashing of slot, false",
        "CLUSTERDOWN The cluster is down, false",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'., false",
        "NOREPLICAS Not enough good replicas to write., false",
        "BUSY Redis is busy running a script., false",
        "LOADING Redis is loading the dataset in memory, false",
        "UNBLOCKED force unblock from blocking operation, false",
        "MOVED 3999 127.0.0.1:6381, true",
        "ASK 3999 127.0.0.1:6381, true",
        "READONLY You can't write against a read only replica., true",
        "OOM command not allowed when used memory > 'maxmemory'., true",
        "NOPERM this user has no permissions to run the 'get' command, true",
        "WRONGTYPE Operation against a key holding the wrong kind of value, true",
        "ERR unknown command 'EVALSHA', true",
    })
    void anErrorOfAServerThatStartsOrIsBusyIsAnOutageAndAnyOtherOneAMistake(String reply, boolean mistake) {
        assertThat(RedisFailures.of(new RedisCommandExecutionException(reply)).isMisconfiguration())
                .isEqualTo(mistake);
    }

    /** More commands than a flood may have on their way. The first one waits for an element, and the others for the first. */
    @Test
    void aFullQueueOfLettuceIsNoFailureOfRedis() {
        RedisClient client = client();
        client.setOptions(RedisClientFactory.options(ClientOptions.create(), true));
        RedisAsyncCommands<byte[], byte[]> commands =
                client.connect(ByteArrayCodec.INSTANCE).async();
        commands.blpop(0, (TestRedis.prefix() + "none").getBytes(UTF_8));
        for (int i = 1; i < 2_000; i++) {
            assertThat(commands.ping().isDone()).isFalse();
        }
        assertThatThrownBy(() -> TestRedis.deadline(Duration.ofSeconds(20))
                        .call(RedisFailures::of)
                        .await(commands.ping().toCompletableFuture()))
                .isInstanceOf(CongestedException.class)
                .hasMessage("too many commands were on their way to Redis");
    }

    /** Another client writes to the bucket within each transaction. A slow one leaves less time than another try needs. */
    @ParameterizedTest
    @ValueSource(longs = {0, 5_000_000})
    void aTransactionThatOthersAlwaysForestallProvesNoOutage(long nanos) {
        RedisKeys keys = TestRedis.keys();
        Charge one = Charge.of(ThrottlePolicy.of("all", BucketSpec.of("1000000/1d")), "", 1);
        byte[] key = keys.key(BucketName.of(one));
        redis.transactionStore(keys, Duration.ofSeconds(20), () -> RedisBucketStore.SERVER_TIME)
                .take(List.of(one));
        var others = redis.connection().sync();
        RedisTransactionBucketStore store = storeWithWorkBefore("multi", redis, keys, Duration.ofSeconds(1), () -> {
            others.set(key, others.get(key));
            LockSupport.parkNanos(nanos);
        });

        assertThatThrownBy(() -> store.take(List.of(one))).isInstanceOf(CongestedException.class);
    }

    /** Redis checks the rights again when it executes a transaction, and leaves out a command that was forbidden meanwhile. */
    @Test
    void aWriteThatFailsWithinItsTransactionIsNoGrant() {
        Charge one = Charge.of(ThrottlePolicy.of("all", BucketSpec.of("1/1d")), "", 1);
        try (TestRedis own = TestRedis.start()) {
            RedisCommands<byte[], byte[]> admin = own.connection().sync();
            var store = storeWithWorkBefore("exec", own, TestRedis.keys(), Duration.ofSeconds(20), () -> {
                await().until(() -> admin.clientList().contains("multi=1"));
                admin.aclSetuser("default", AclSetuserArgs.Builder.removeCommand(CommandType.SET));
            });
            assertThatThrownBy(() -> store.take(List.of(one)))
                    .is(TestRedis.MISCONFIGURATION)
                    .hasMessageContaining("ACLs rules changed");
            close(); // before its server
        }
    }

    /** Returns a store with one connection, which does work before each call of one of its methods. */
    @SuppressWarnings("unchecked")
    private RedisTransactionBucketStore storeWithWorkBefore(
            String called, TestRedis redis, RedisKeys keys, Duration timeout, Runnable work) {
        StatefulRedisConnection<byte[], byte[]> connection = client(redis).connect(ByteArrayCodec.INSTANCE);
        RedisAsyncCommands<byte[], byte[]> commands = proxy(RedisAsyncCommands.class, (proxy, method, arguments) -> {
            if (method.getName().equals(called)) {
                work.run();
            }
            return method.invoke(connection.async(), arguments);
        });
        StatefulRedisConnection<byte[], byte[]> observed = proxy(
                StatefulRedisConnection.class,
                (proxy, method, arguments) ->
                        method.getName().equals("async") ? commands : method.invoke(connection, arguments));
        return new RedisTransactionBucketStore(
                new DedicatedConnections(() -> CompletableFuture.completedFuture(observed)),
                keys,
                TestRedis.deadline(timeout),
                TestRedis.FAILURES,
                () -> RedisBucketStore.SERVER_TIME);
    }

    private static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return type.cast(
                Proxy.newProxyInstance(RedisFailuresTests.class.getClassLoader(), new Class<?>[] {type}, handler));
    }

    /** By default a managed Redis has an eviction policy and no bound. */
    @ParameterizedTest
    @CsvSource({"0, volatile-lru, false", "1000, volatile-lru, true", "1000, noeviction, false"})
    void onlyABoundedMemoryEvicts(String maximum, String policy, boolean evicts) {
        String info = "used_memory:5\r\nmaxmemory:%s\r\nmaxmemory_human:1K\r\nmaxmemory_policy:%s\r\n";
        assertThat(Memory.read(info.formatted(maximum, policy)).mayEvict()).isEqualTo(evicts);
    }
}
