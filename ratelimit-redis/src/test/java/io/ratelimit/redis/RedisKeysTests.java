package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisURI;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.PatientAwaits;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RedisKeysTests {

    private static final RedisKeys KEYS = new RedisKeys("ratelimit:shop", "secret");

    private static String key(RedisKeys keys, String key) {
        ThrottlePolicy policy = ThrottlePolicy.of("per-user", BucketSpec.of("1/s"), "user");
        return new String(keys.key(Charge.of(policy, key, 1)), StandardCharsets.UTF_8);
    }

    @Test
    void aKeyContainsNothingThatAClientSent() {
        for (String key : List.of("", "alice", "{a}", "a:b\r\n*3", "ä\ud800", "x".repeat(5_000))) {
            assertThat(key(KEYS, key)).matches("ratelimit:shop:per-user:[A-Za-z0-9_-]{22}");
        }
    }

    @Test
    void itIsTheHmacOfBothBytesOfEachChar() {
        // printf '\0a\0l\0i\0c\0e' | openssl dgst -sha256 -hmac secret -binary | head -c 16 | basenc --base64url
        assertThat(key(KEYS, "alice")).isEqualTo("ratelimit:shop:per-user:tOekrnpjPPxJOk8mjJmWZw");
    }

    @Test
    void noTwoKeysShareOne() {
        Set<String> seen = new HashSet<>();
        for (String key : List.of("", "a", "\0a", "a\0", "ä", "\ud800", "\ud801", "\udc00", "?")) {
            assertThat(seen.add(key(KEYS, key))).as(key).isTrue();
        }
    }

    @Test
    void withoutTheSecretKeysCanNotBeComputed() {
        assertThat(key(new RedisKeys("ratelimit:shop", "other"), "alice")).isNotEqualTo(key(KEYS, "alice"));
        assertThat(key(new RedisKeys("ratelimit:shop", ""), "alice")).isNotEqualTo(key(KEYS, "alice"));
    }

    /** Otherwise a reader of the keys could find those of a guessed address. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theSecretOfAStorageIsInItsKeys(boolean transactions) {
        TestRedis redis = TestRedis.shared();
        String prefix = TestRedis.prefix();
        Deadline deadline = TestRedis.deadline(Duration.ofSeconds(20));
        PlainClients clients = new PlainClients(RedisURI.create(redis.host(), redis.port()), false);
        Charge alice = Charge.of(ThrottlePolicy.of("api", BucketSpec.of("5/1d"), "user"), "alice", 1);
        try (RedisStorage storage = transactions
                ? RedisStorage.withTransactions(clients, prefix, "secret", deadline)
                : RedisStorage.withScripts(clients, prefix, "secret", deadline)) {
            PatientAwaits.awaitSelfTest(storage);
            assertThat(storage.store().take(List.of(alice)).allowed()).isTrue();
        }
        for (String secret : List.of("secret", "")) {
            RedisKeys keys = new RedisKeys(prefix, secret);
            byte[] key = transactions ? keys.key(BucketName.of(alice)) : keys.key(alice);
            assertThat(redis.connection().sync().exists(key)).as(secret).isEqualTo(secret.isEmpty() ? 0 : 1);
        }
    }

    @Test
    void threadsGetTheSameKeys() {
        Set<String> seen = ConcurrentHashMap.newKeySet();
        IntStream.range(0, 20_000).parallel().forEach(i -> seen.add(key(KEYS, "user" + i % 100)));
        assertThat(seen).hasSize(100);
    }
}
