package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.web.servlet.RawHttp;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The state of policies and buckets, as the actuator endpoint shows it. */
class RateLimitsEndpointTests extends RateLimitsEndpointCalls {

    @Test
    void allPoliciesAreListedWithTheirLimitsAndScopes() {
        http.get("/all");
        http.get("/counted?name=a");
        http.get("/counted?name=b");
        Map<String, Object> policies = read("", "$.policies");

        assertThat(policies.keySet())
                .containsSequence("all", "plans", "named", "exact", "pairs", "addresses", "candidate")
                .contains("work", "own", "nothing");
        assertThat(policies.get("all"))
                .isEqualTo(Map.of(
                        "policy", "all",
                        "mode", "enforce",
                        "key", List.of(),
                        "limit",
                                Map.of(
                                        "rate",
                                        "6/1m",
                                        "capacity",
                                        9,
                                        "refill",
                                        "greedy",
                                        "available",
                                        8,
                                        "fullInMs",
                                        10000),
                        "tiers", Map.of(),
                        "scope",
                                Map.of(
                                        "appliesTo",
                                        "requests",
                                        "phase",
                                        "before-authentication",
                                        "paths",
                                        List.of("/all"),
                                        "excludePaths",
                                        List.of("/health"),
                                        "methods",
                                        List.of(),
                                        "overrides",
                                        0,
                                        "backend",
                                        "local"),
                        "buckets", 1,
                        "waiting", 0,
                        "deniedMost", List.of()));
        assertThat(policies.get("named"))
                .asInstanceOf(InstanceOfAssertFactories.MAP)
                .containsEntry("key", List.of("query:name"))
                .containsEntry("limit", Map.of("rate", "2/1d", "capacity", 2, "refill", "greedy"))
                .containsEntry("tiers", Map.of("pro", Map.of("rate", "4/1d", "capacity", 4, "refill", "greedy")));
        assertThat(policies.get("counted"))
                .asInstanceOf(InstanceOfAssertFactories.MAP)
                .containsEntry("buckets", 2);
    }

    @Test
    void aSinglePolicyCanBeRead() {
        assertThat(this.<Integer>read("/named", "$.scope.overrides")).isEqualTo(3);
        assertThat(this.<List<String>>read("/named", "$.scope.methods")).containsExactly("GET");
        assertThat(this.<String>read("/candidate", "$.mode")).isEqualTo("shadow");
        assertThat(this.<String>read("/work", "$.scope.appliesTo")).isEqualTo("annotated");
        assertThat(this.<String>read("/own", "$.scope.appliesTo")).isEqualTo("annotated");
        assertThat(this.<Map<String, Object>>read("/all", "$")).doesNotContainKey("backend");
        http.get("/plans?plan=pro");
        assertThat(this.<Integer>read("/plans", "$.tiers.pro.available")).isEqualTo(6);
        assertThat(this.<Integer>read("/plans", "$.limit.available")).isEqualTo(5);
    }

    @Test
    void aBucketIsBroughtUpToDateWhenItIsRead() {
        for (int i = 0; i < 9; i++) {
            http.get("/all");
        }
        assertThat(this.<Integer>read("/all", "$.limit.available")).isZero();
        server.advance(Duration.ofSeconds(20));
        assertThat(this.<Integer>read("/all", "$.limit.available")).isEqualTo(2);
        assertThat(this.<Integer>read("/all", "$.limit.fullInMs")).isEqualTo(70_000);
    }

    @Test
    void waitingCallsAreCounted() {
        http.get("/waits");
        try (RawHttp.Connection waiting = http.open().write(RawHttp.text("GET", "/waits"))) {
            await().until(() -> this.<Integer>read("/waits", "$.waiting") == 1);
            server.advance(Duration.ofHours(1));
            assertThat(waiting.read().status()).isEqualTo(200);
        }
        assertThat(this.<Integer>read("/waits", "$.waiting")).isZero();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "alice",
                "a/b",
                "a%2Fb",
                "a%b",
                "a+b c",
                "😀",
                "a,b",
                "a&key=b",
                "a\"b\\",
                "ünï",
                "<script>",
                "..",
                "{x}"
            })
    void anyKeyIsFoundByTheTextOfTheRequest(String name) {
        http.get("/named?name=" + encoded(name));
        http.get("/named?name=" + encoded("an" + name));

        assertThat(this.<Integer>read("/named?key=" + encoded(name), "$.limit.available"))
                .isEqualTo(1);
        assertThat(reset("/named?key=" + encoded(name)).status()).isEqualTo(200);
        assertThat(this.<Integer>read("/named?key=" + encoded(name), "$.limit.available"))
                .isEqualTo(2);
        assertThat(this.<Integer>read("/named?key=" + encoded("an" + name), "$.limit.available"))
                .isEqualTo(1);
    }

    @Test
    void aLongKeyIsFoundByTheTextOfTheRequest() {
        String name = "a/😀".repeat(1000) + "x".repeat(4000);
        http.get("/named?name=" + encoded(name));

        assertThat(this.<Integer>read("/named?key=" + encoded(name), "$.limit.available"))
                .isEqualTo(1);
        assertThat(this.<Integer>read("/named?key=" + encoded(name + "y"), "$.limit.available"))
                .isEqualTo(2);
        assertThat(read("/named?key=" + encoded(name)).body()).hasSizeLessThan(1000);
    }

    @Test
    void caseMattersAsItDoesForRequests() {
        http.get("/named?name=Alice");
        http.get("/exact?name=Alice");

        assertThat(this.<Integer>read("/named?key=aLICE", "$.limit.available")).isEqualTo(1);
        assertThat(this.<Integer>read("/exact?key=aLICE", "$.limit.available")).isEqualTo(2);
        assertThat(this.<Integer>read("/exact?key=Alice", "$.limit.available")).isEqualTo(1);
    }

    @Test
    void aKeyOfSeveralPartsHasATextForEachInTheirOrder() {
        http.get("/pairs/17?name=a,b");

        assertThat(this.<Integer>read("/pairs?key=a,b&key=" + encoded("GET /pairs/{id}"), "$.limit.available"))
                .isEqualTo(1);
        assertThat(this.<Integer>read("/pairs?key=a&key=" + encoded("GET /pairs/{id}"), "$.limit.available"))
                .isEqualTo(2);
        http.get("/pairs/17/none?name=a");
        assertThat(this.<Integer>read("/pairs?key=a&key=none", "$.limit.available"))
                .isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({
        "2001:db8:1:2::7, 2001:db8:1:2:ffff::, 2",
        "2001:db8:1:2::7, 2001:0db8:0001:0002:0:0:0:1, 2",
        "2001:db8:1:2::7, 2001:db8:1:2::/64, 2",
        "2001:db8:1:2::7, 2001:db8:1:3::7, 3",
        "192.0.2.7, ::ffff:192.0.2.7, 2",
        "::ffff:192.0.2.7, 192.0.2.7, 2",
        "10.1.2.3, 10.1.2.3, 6",
        "192.0.2.7, none, 3"
    })
    void anAddressIsFoundByAnyOfItsSpellings(String sent, String spelling, int left) {
        http.get("/addresses", "X-Forwarded-For: " + sent);

        assertThat(this.<Integer>read("/addresses?key=" + encoded(spelling) + "&key=GET", "$.limit.available"))
                .isEqualTo(left);
    }

    @Test
    void aTierHasBucketsOfItsOwn() {
        http.get("/named?name=alice&plan=pro");

        Map<String, Object> inTier = read("/named?key=alice&tier=pro", "$");
        assertThat(JsonPath.<Integer>read(inTier, "$.limit.available")).isEqualTo(3);
        assertThat(JsonPath.<String>read(inTier, "$.key.tier")).isEqualTo("pro");
        Map<String, Object> withoutTier = read("/named?key=alice", "$");
        assertThat(JsonPath.<Integer>read(withoutTier, "$.limit.available")).isEqualTo(2);
        assertThat(withoutTier).containsEntry("tiers", List.of("pro"));
        assertThat(reset("/named?key=alice&tier=pro").status()).isEqualTo(200);
        assertThat(this.<Integer>read("/named?key=alice&tier=pro", "$.limit.available"))
                .isEqualTo(4);
        http.get("/plans?plan=pro");
        assertThat(this.<Integer>read("/plans?tier=pro", "$.limit.available")).isEqualTo(6);
    }

    @Test
    void aKeyWithAnOverrideHasTheBucketOfTheOverride() {
        http.get("/named?name=boss");
        http.get("/named?name=watched");

        assertThat(this.<Map<String, Object>>read("/named?key=boss", "$"))
                .containsEntry("overridden", true)
                .containsEntry("mode", "enforce")
                .extractingByKey("limit")
                .isEqualTo(Map.of(
                        "rate", "20/1d", "capacity", 20, "refill", "greedy", "available", 19, "fullInMs", 4_320_000));
        assertThat(this.<Map<String, Object>>read("/named?key=free", "$"))
                .containsEntry("overridden", true)
                .containsEntry("mode", "off")
                .doesNotContainKeys("limit", "key");
        assertThat(this.<Map<String, Object>>read("/named?key=watched", "$")).containsEntry("mode", "shadow");
        assertThat(this.<Integer>read("/named?key=watched", "$.limit.available"))
                .isEqualTo(1);
        assertThat(this.<Boolean>read("/named?key=alice", "$.overridden")).isFalse();
        assertThat(reset("/named?key=boss&tier=pro").status()).isEqualTo(200);
        assertThat(this.<Integer>read("/named?key=boss", "$.limit.available")).isEqualTo(20);
        assertRejected(reset("/named?key=free"), 400, "off for this key");
    }

    @Test
    void keysOfAnnotationsAreFound() {
        http.get("/work/acme");
        http.get("/own/a/b");

        assertThat(this.<Integer>read("/work?key=acme", "$.limit.available")).isEqualTo(1);
        assertThat(this.<Integer>read("/work?key=other", "$.limit.available")).isEqualTo(2);
        assertThat(this.<Integer>read("/own?key=a&key=b", "$.limit.available")).isEqualTo(2);
        assertThat(this.<Integer>read("/own?key=b&key=a", "$.limit.available")).isEqualTo(3);
        assertThat(reset("/work?key=ACME").status()).isEqualTo(200);
        assertThat(this.<Integer>read("/work?key=acme", "$.limit.available")).isEqualTo(2);
    }

    @ParameterizedTest
    @ValueSource(strings = {"10.1.2.3", "2001:db8::1", "acme"})
    void keysOfAnnotationsAreNoAddresses(String tenant) {
        http.get("/texts/" + tenant);

        assertThat(this.<Boolean>read("/texts?key=" + tenant, "$.overridden")).isFalse();
        assertThat(this.<Integer>read("/texts?key=" + tenant, "$.limit.available"))
                .isEqualTo(1);
        assertThat(reset("/texts?key=" + tenant).status()).isEqualTo(200);
        assertThat(this.<Integer>read("/texts?key=" + tenant, "$.limit.available"))
                .isEqualTo(2);
        assertThat(allowed("/texts/" + tenant)).isEqualTo(2);
    }

    @Test
    void theKeysDeniedMostHaveTheHashesOfTheirBuckets() {
        for (int i = 0; i < 5; i++) {
            http.get("/named?name=alice");
            http.get("/candidate?name=bob");
        }
        List<Map<String, Object>> denied = read("/named", "$.deniedMost");
        String hash = read("/named?key=alice", "$.key.hash");

        assertThat(denied).contains(Map.of("key", Map.of("hash", hash), "denied", 3));
        assertThat(this.<List<Object>>read("/candidate", "$.deniedMost"))
                .contains(Map.of(
                        "key", Map.of("hash", read("/candidate?key=bob", "$.key.hash")), "denied", 4, "shadow", true));
        assertThat(read("").body()
                        + read("/named").body()
                        + read("/named?key=alice").body())
                .doesNotContain("alice")
                .doesNotContain("bob");
    }
}
