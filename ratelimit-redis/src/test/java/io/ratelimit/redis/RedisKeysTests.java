package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

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

    @Test
    void threadsGetTheSameKeys() {
        Set<String> seen = ConcurrentHashMap.newKeySet();
        IntStream.range(0, 20_000).parallel().forEach(i -> seen.add(key(KEYS, "user" + i % 100)));
        assertThat(seen).hasSize(100);
    }
}
