package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Threads;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A client that invents a million keys leaves small values that all expire. */
@Tag("slow")
class RedisSprayTests {

    private static final int KEYS = 1_000_000;
    private static final int THREADS = 50;
    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("per-ip", BucketSpec.of("600/1h").withCapacity(800), "ip");

    @AutoClose
    private final TestRedis redis = TestRedis.start();

    @Test
    void everyKeyExpiresAndIsSmall() {
        RedisKeys keys = new RedisKeys("ratelimit:shop", "");
        BucketStore store = redis.scriptStore(keys, Duration.ofSeconds(20), false, () -> RedisBucketStore.SERVER_TIME);
        RedisCommands<byte[], byte[]> commands = redis.connection().sync();
        long before = used(commands);
        Threads.run(THREADS, thread -> {
            for (int i = thread; i < KEYS / 20; i += THREADS) {
                List<Charge> charges = charges(i);
                if (i % 10 == 0) {
                    charges.forEach(charge -> store.take(List.of(charge)));
                } else {
                    store.take(charges);
                }
            }
        });
        assertThat(commands.dbsize()).isEqualTo(KEYS);
        assertThat(commands.info("keyspace")).contains("keys=" + KEYS + ",expires=" + KEYS + ",");
        int name = keys.key(Charge.of(POLICY, "user0", 1)).length;
        assertThat((used(commands) - before) / KEYS)
                .as("bytes of a key, its %d bytes of name and the tables of all keys included", name)
                .isBetween(100L, 300L);
    }

    /** Mostly twenty charges a call, which is faster; sometimes one by one. */
    private static List<Charge> charges(int first) {
        return IntStream.range(0, 20)
                .mapToObj(i -> Charge.of(POLICY, "user" + (20 * first + i), 700))
                .toList();
    }

    private static long used(RedisCommands<byte[], byte[]> commands) {
        return Long.parseLong(commands.info("memory").replaceAll("(?s).*used_memory:(\\d+).*", "$1"));
    }
}
