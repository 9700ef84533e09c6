package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Changes of limits, resets of buckets, and the responses to invalid requests. */
@ExtendWith(OutputCaptureExtension.class)
class RateLimitsEndpointChangeTests extends RateLimitsEndpointCalls {

    @Test
    void aNewRateAppliesToTheNextRequestAndTheResponseNamesTheInstance(CapturedOutput output) {
        assertThat(allowed("/named?name=alice")).isEqualTo(2);

        Response answer = change("/named", "{\"rate\": \"2/1m\"}");

        assertThat(answer.status()).isEqualTo(200);
        String since = JsonPath.read(answer.body(), "$.now.changed.since");
        assertThat(Instant.parse(since)).isBeforeOrEqualTo(Instant.now());
        Map<String, Object> now = Map.of(
                "rate",
                "2/1m",
                "capacity",
                2,
                "refill",
                "greedy",
                "changed",
                Map.of("for", "instance", "since", since, "rate", "2/1d", "capacity", 2));
        assertThat(JsonPath.<Map<String, Object>>read(answer.body(), "$"))
                .isEqualTo(Map.of(
                        "policy",
                        "named",
                        "before",
                        Map.of("rate", "2/1d", "capacity", 2, "refill", "greedy"),
                        "now",
                        now,
                        "for",
                        "instance"));
        assertThat(JsonPath.<Map<String, Object>>read(read("/named").body(), "$.limit"))
                .isEqualTo(now);
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
    void aChangeThatCodeMakesIsADifferenceOfThisInstance() {
        change("/named", "{\"capacity\": 5}");
        server.bean(Throttlers.class).get("named").reconfigure(BucketSpec.of("3/1d"));
        assertThat(JsonPath.<Map<String, Object>>read(read("/named").body(), "$.limit.changed"))
                .isEqualTo(Map.of("for", "instance", "rate", "2/1d", "capacity", 2));
    }

    @Test
    void aChangeOfATierIsTakenBackAlone() {
        change("/named", "{\"capacity\": 5}");
        post("/named", "{\"rate\":\"9/1d\",\"tier\":\"pro\"}");

        Response answer = http.request("DELETE", ENDPOINT + "/named/change?tier=pro");

        assertThat(JsonPath.<Map<String, Object>>read(answer.body(), "$"))
                .containsEntry("tier", "pro")
                .containsEntry("for", "instance")
                .containsEntry("now", Map.of("rate", "4/1d", "capacity", 4, "refill", "greedy"));
        assertThat(read("/named").body()).contains("\"pro\":{\"rate\":\"4/1d\",\"capacity\":4,\"refill\":\"greedy\"}");
        assertThat(JsonPath.<Integer>read(read("/named").body(), "$.limit.capacity"))
                .isEqualTo(5);
        assertRejected(
                http.request("DELETE", ENDPOINT + "/named/change?tier=pro"),
                404,
                "the limit is that of the configuration");
        assertThat(http.post(ENDPOINT + "/named/change").body()).doesNotContain("read-only");
    }

    @Test
    void aResetOfABucketIsLoggedWithoutItsKey(CapturedOutput output) {
        assertThat(allowed("/named?name=mallory")).isEqualTo(2);
        assertThat(allowed("/all")).isEqualTo(9);

        Response answer = reset("/named?key=mallory");

        assertThat(answer.status()).isEqualTo(200);
        assertThat(JsonPath.<String>read(answer.body(), "$.for")).isEqualTo("instance");
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
                "/named?tier=pro | 400 | pass 1 'key' (query:name), not 0",
                "/named?key=a&key=b | 400 | pass 1 'key' (query:name), not 2",
                "/pairs?key=a | 400 | pass 2 'key's (query:name, endpoint), not 1",
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
        assertRejected(reset(path), 400, "pass ");
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
                "/named | {\"rate\":\"fast\"} | 400 | is not a rate: write the tokens and the period",
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
                "/named | {\"rate\":\"1/1s\",\"capcity\":7} | 400 | unknown field in the body; allowed are: capacity, for, inFlight, rate, tier, until",
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
        assertRejected(post("/named", json), 400, "the body must be a JSON object with texts and numbers, such as");
    }

    @Test
    void aChangeMustNotBeAForm() {
        Response answer = http.send("POST " + ENDPOINT + "/named HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\n\r\nrate=1/1s");
        assertRejected(answer, 415, "a change must be sent with 'Content-Type: application/json'");
        assertThat(http.post(ENDPOINT + "/named?rate=1/1s").status()).isEqualTo(415);
    }

    @Test
    void anotherMethodIsNotAllowed() {
        assertThat(http.request("PUT", ENDPOINT + "/named").status()).isEqualTo(405);
        assertThat(http.request("DELETE", ENDPOINT).status()).isEqualTo(405);
    }
}
