package io.ratelimit.autoconfigure.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** The actuator endpoint with all access, but with hidden keys. */
@ExtendWith(OutputCaptureExtension.class)
class RateLimitsEndpointTests {

    private static final String YAML = """
            server.max-http-request-header-size: 64KB
            management:
              endpoints.web.exposure.include: ratelimits
              endpoint.ratelimits.access: unrestricted
            ratelimit:
              client-ip.trusted-proxies: 127.0.0.1
              exclude-paths: /health
              policies:
                all: { rate: 6/1m, capacity: 9, paths: /all }
                plans: { rate: 5/1d, tiers: { pro: { rate: 7/1d } }, tier: "query:plan", paths: /plans }
                named:
                  key: query:name
                  rate: 2/1d
                  paths: /named
                  methods: GET
                  tiers: { pro: { rate: 4/1d } }
                  tier: query:plan
                  overrides:
                    - { keys: [boss], rate: 20/1d }
                    - { keys: [free], mode: off }
                    - { keys: [watched], mode: shadow }
                exact: { key: query:name, ignore-case: false, rate: 2/1d, paths: /exact }
                pairs: { key: [query:name, endpoint], rate: 2/1d, paths: "/pairs/**" }
                addresses:
                  key: [ip, method]
                  rate: 3/1d
                  paths: /addresses
                  overrides:
                    - { keys: [[10.0.0.0/8, GET]], rate: 7/1d }
                candidate: { key: query:name, rate: 1/1d, mode: shadow, paths: /candidate }
                counted: { key: query:name, rate: 2/1d, paths: /counted }
                waits: { rate: 1/1h, max-wait: 2h, paths: /waits }
                nothing: { rate: 1/1d, mode: off }
                work: { rate: 2/1d, applies-to: annotated }
                priced: { rate: 50/1d, cost: 10, tiers: { low: { rate: 20/1d } }, tier: "query:plan", paths: /priced }
            """;

    private static final String ENDPOINT = "/actuator/ratelimits";

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    private final RawHttp http = server.http();
    private ThrottlePolicy changed;

    @AfterEach
    void changeBack() {
        if (changed != null) {
            Throttlers throttlers = server.bean(Throttlers.class);
            throttlers.get(changed.name()).reconfigure(changed.spec());
            changed.tiers()
                    .forEach((tier, spec) -> throttlers.get(changed.name()).reconfigure(tier, spec));
        }
    }

    private Response read(String path) {
        Response answer = http.get(ENDPOINT + path);
        assertThat(answer.status()).as(answer.body()).isEqualTo(200);
        assertThat(answer.header("Content-Type")).isEqualTo("application/vnd.spring-boot.actuator.v3+json");
        return answer;
    }

    private <T> T read(String path, String found) {
        return JsonPath.read(read(path).body(), found);
    }

    private Response post(String path, String json) {
        return http.send(
                "POST " + ENDPOINT + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: " + json.getBytes(StandardCharsets.ISO_8859_1).length + "\r\n\r\n" + json);
    }

    private Response change(String path, String json) {
        changed = server.bean(Throttlers.class).get(path.substring(1)).policy();
        return post(path, json);
    }

    private Response reset(String path) {
        return http.request("DELETE", ENDPOINT + path);
    }

    private int allowed(String path, String... headers) {
        int allowed = 0;
        for (int i = 0; i < 30; i++) {
            allowed += http.get(path, headers).status() == 200 ? 1 : 0;
        }
        return allowed;
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private static void assertRejected(Response answer, int status, String detail) {
        assertThat(answer.status()).as(answer.body()).isEqualTo(status);
        assertThat(answer.header("Content-Type")).isEqualTo("application/problem+json");
        assertThat(JsonPath.<Integer>read(answer.body(), "$.status")).isEqualTo(status);
        assertThat(JsonPath.<String>read(answer.body(), "$.detail")).contains(detail);
    }

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

    @Test
    void aNewRateAppliesToTheNextRequestAndTheResponseNamesTheInstance(CapturedOutput output) {
        assertThat(allowed("/named?name=alice")).isEqualTo(2);

        Response answer = change("/named", "{\"rate\": \"2/1m\"}");

        assertThat(answer.status()).isEqualTo(200);
        assertThat(JsonPath.<Map<String, Object>>read(answer.body(), "$"))
                .isEqualTo(Map.of(
                        "policy",
                        "named",
                        "before",
                        Map.of("rate", "2/1d", "capacity", 2, "refill", "greedy"),
                        "now",
                        Map.of("rate", "2/1m", "capacity", 2, "refill", "greedy"),
                        "holds",
                        "for this instance, until it stops"));
        assertThat(http.get("/named?name=alice").header("Retry-After")).isEqualTo("30");
        server.advance(Duration.ofSeconds(30));
        assertThat(allowed("/named?name=alice")).isEqualTo(1);
        assertThat(output)
                .contains("Throttle policy 'named' was changed at runtime: 2/1m, capacity 2; before: 2/1d, capacity 2");
    }

    @Test
    void aCapacityOrBothOrATierCanBeChanged(CapturedOutput output) {
        assertThat(JsonPath.<Map<String, Object>>read(
                        change("/named", "{\"capacity\": 5}").body(), "$.now"))
                .containsEntry("rate", "2/1d")
                .containsEntry("capacity", 5);
        assertThat(JsonPath.<Map<String, Object>>read(
                        post("/named", "{\"rate\":\"100/1s\",\"capacity\":\"200\"}")
                                .body(),
                        "$.now"))
                .containsEntry("rate", "100/1s")
                .containsEntry("capacity", 200);
        assertThat(JsonPath.<Map<String, Object>>read(
                        post("/named", "{\"rate\":\"9/1d\",\"tier\":\"pro\"}").body(), "$"))
                .containsEntry("tier", "pro")
                .extractingByKey("before")
                .isEqualTo(Map.of("rate", "4/1d", "capacity", 4, "refill", "greedy"));
        assertThat(server.bean(Throttlers.class).get("named").policy().tiers())
                .containsEntry("pro", BucketSpec.of("9/1d"));
        assertThat(output).contains("'named' in tier 'pro' was changed at runtime: 9/1d");
    }

    @Test
    void aResetOfABucketIsLoggedWithoutItsKey(CapturedOutput output) {
        assertThat(allowed("/named?name=mallory")).isEqualTo(2);
        assertThat(allowed("/all")).isEqualTo(9);

        Response answer = reset("/named?key=mallory");

        assertThat(answer.status()).isEqualTo(200);
        assertThat(JsonPath.<String>read(answer.body(), "$.holds")).isEqualTo("for this instance");
        assertThat(JsonPath.<Integer>read(answer.body(), "$.limit.available")).isEqualTo(2);
        assertThat(JsonPath.<String>read(answer.body(), "$.key.hash"))
                .isEqualTo(read("/named?key=mallory", "$.key.hash"));
        assertThat(allowed("/named?name=mallory")).isEqualTo(2);
        assertThat(reset("/all").body()).contains("\"available\":9").doesNotContain("\"key\"");
        assertThat(allowed("/all")).isEqualTo(9);
        assertThat(output)
                .contains("Throttle policy 'named': a bucket was reset through the actuator")
                .contains("Throttle policy 'all': a bucket was reset")
                .doesNotContain("mallory");
    }

    /** A key without charges has a full bucket, and is read as one. */
    @Test
    void aResetBucketCanBeResetAgain() {
        assertThat(allowed("/named?name=carol")).isEqualTo(2);
        Response once = reset("/named?key=carol");
        Response twice = reset("/named?key=carol");
        assertThat(twice.status()).isEqualTo(200);
        assertThat(twice.body()).isEqualTo(once.body());
        assertThat(JsonPath.<Integer>read(reset("/named?key=nobody").body(), "$.limit.available"))
                .isEqualTo(2);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "/nobody | 404 | no policy has this name; the policies are: addresses, all, candidate,",
                "/nobody?key=a | 404 | no policy has this name",
                "/%F0%9F%98%80 | 404 | no policy has this name",
                "/named?key=a&tier=gold | 404 | 'named' has no such tier; its tiers are: pro",
                "/exact?key=a&tier=gold | 404 | 'exact' has no tiers",
                "/named?key= | 400 | each 'key' must be more than blanks",
                "/named?key=%20%09 | 400 | each 'key' must be more than blanks",
                "/named?key | 400 | each 'key' must be more than blanks",
                "/named?tier=pro | 400 | the number of 'key's must be 1, one for each part in this order: query:name; but was 0",
                "/named?key=a&key=b | 400 | the number of 'key's must be 1, one for each part in this order: query:name; but was 2",
                "/pairs?key=a | 400 | the number of 'key's must be 2, one for each part in this order: query:name, endpoint; but was 1",
                "/pairs?key=a&key=GET | 400 | the endpoint of the key must be one of the application's, such as '",
                "/addresses?key=localhost&key=GET | 400 | the ip of the key must be an address",
                "/addresses?key=10.0.0.0/8&key=GET | 400 | the ip of the key must be an address",
                "/addresses?key=192.0.2.7&key=get | 400 | the method of the key must be one that HTTP defines",
                "/all?key=a | 400 | the policy is global: it has one bucket and no 'key'",
                "/named?kye=a | 400 | unknown parameter; allowed are: key, tier",
                "/named?security=a | 400 | unknown parameter",
                "?key=a | 400 | unknown parameter; none is allowed",
                "/named?policy=all | 400 | unknown parameter; allowed are: key, tier"
            })
    void anInvalidRequestIsRejectedWithAReason(String path, int status, String detail) {
        assertRejected(http.get(ENDPOINT + path), status, detail);
        if (!path.startsWith("?") && !path.contains("kye")) {
            assertRejected(reset(path), status, detail);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/named", "/pairs", "/addresses"})
    void aPartitionedPolicyRejectsAResetWithoutAKey(String path) {
        assertRejected(reset(path), 400, "the number of 'key's must be ");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "/nobody | {\"rate\":\"1/1s\"} | 404 | no policy has this name",
                "/named | {\"rate\":\"1/1s\",\"tier\":\"gold\"} | 404 | 'named' has no such tier",
                "/named | {} | 400 | the body must contain a rate, a capacity or both, such as {\"rate\": \"100/1s\", \"capacity\": 200}",
                "/named | {\"rate\":null} | 400 | the body must contain a rate, a capacity or both",
                "/named | {\"tier\":\"pro\"} | 400 | the body must contain a rate, a capacity or both",
                "/named | {\"rate\":\"\"} | 400 | is not a rate",
                "/named | {\"rate\":\"fast\"} | 400 | is not a rate: say how many tokens in which period",
                "/named | {\"rate\":\"5/100\"} | 400 | has no unit",
                "/named | {\"rate\":\"0/1s\"} | 400 | must be at least 1, but was 0",
                "/named | {\"rate\":\"-1/1s\"} | 400 | must be at least 1, but was -1",
                "/named | {\"rate\":5} | 400 | is not a rate",
                "/named | {\"rate\":\"1/1d\",\"capacity\":1000000000000} | 400 | at most ten years",
                "/named | {\"capacity\":0} | 400 | capacity must be between 1 and 1,000,000,000,000, but was 0",
                "/named | {\"capacity\":-1} | 400 | capacity must be a whole number between 1",
                "/named | {\"capacity\":2.5} | 400 | capacity must be a whole number",
                "/named | {\"capacity\":1e3} | 400 | capacity must be a whole number",
                "/named | {\"capacity\":\"\"} | 400 | capacity must be a whole number",
                "/named | {\"capacity\":true} | 400 | capacity must be a whole number",
                "/named | {\"capacity\":99999999999999999999} | 400 | capacity must be a whole number",
                "/named | {\"capacity\":9999999999999} | 400 | capacity must be between 1 and",
                "/named | {\"rate\":\"1/1s\",\"capcity\":7} | 400 | unknown field in the body; allowed are: capacity, rate",
                "/named | {\"rate\":\"1/1s\",\"policy\":\"all\"} | 400 | the policy is the one in the path",
                "/named?rate=1/1s | {} | 400 | the change must be in the body, as JSON, not in the query",
                "/named?policy=all | {\"rate\":\"1/1s\"} | 400 | the change must be in the body, as JSON, not in the query",
                "/priced | {\"capacity\":9} | 400 | capacity of 'priced' must be at least the cost of the policy, 10,",
                "/priced | {\"rate\":\"9/1d\"} | 400 | capacity of 'priced' must be at least the cost",
                "/priced | {\"capacity\":9,\"tier\":\"low\"} | 400 | capacity of the tier 'low' of 'priced' must be at"
            })
    void anInvalidChangeIsRejectedWithAReasonAndChangesNothing(String path, String json, int status, String detail) {
        Throttlers throttlers = server.bean(Throttlers.class);
        List<ThrottlePolicy> before =
                throttlers.all().stream().map(throttler -> throttler.policy()).toList();

        assertRejected(post(path, json), status, detail);

        assertThat(throttlers.all().stream().map(throttler -> throttler.policy()))
                .isEqualTo(before);
    }

    @Test
    void aLongTextIsNotRepeatedInTheResponse() {
        Response answer = post("/named", "{\"rate\":\"" + "9".repeat(3_000_000) + "/1s\"}");
        assertRejected(answer, 400, "rate must be at most 64 characters long, such as '100/1s', but was 3000003");
        assertThat(answer.body()).hasSizeLessThan(200);
        assertRejected(post("/named", "{\"rate\":\"" + "9".repeat(61) + "/1s\"}"), 400, "9/1s' is not a rate");
    }

    @ParameterizedTest
    @ValueSource(strings = {"{", "[]", "5", "{\"rate\":{}}", "{\"rate\":[\"1/1s\"]}"})
    void aBodyThatIsNoObjectOfTextsIsABadRequest(String json) {
        assertThat(post("/named", json).status()).isEqualTo(400);
    }

    @Test
    void aChangeMustNotBeAForm() {
        Response answer = http.send("POST " + ENDPOINT + "/named HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\n\r\nrate=1/1s");
        assertThat(answer.status()).isEqualTo(415);
        assertThat(http.post(ENDPOINT + "/named?rate=1/1s").status()).isEqualTo(415);
    }

    @Test
    void anotherMethodIsNotAllowed() {
        assertThat(http.request("PUT", ENDPOINT + "/named").status()).isEqualTo(405);
        assertThat(http.request("DELETE", ENDPOINT).status()).isEqualTo(405);
    }

    @RestController
    static class Api {

        @GetMapping({
            "/all",
            "/named",
            "/exact",
            "/plans",
            "/addresses",
            "/candidate",
            "/counted",
            "/waits",
            "/priced",
            "/pairs/{id}"
        })
        String get() {
            return "";
        }

        @GetMapping("/work/{tenant}")
        @RateLimited(policy = "work", key = "#tenant")
        public String work(@PathVariable String tenant) {
            return tenant;
        }

        @GetMapping("/own/{a}/{b}")
        @RateLimited(name = "own", rate = "3/1d", key = "{#a, #b}")
        public String own(@PathVariable String a, @PathVariable String b) {
            return a + b;
        }
    }
}
