package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimit.BucketSpec;
import io.ratelimit.Decision;
import io.ratelimit.Throttlers;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The actuator endpoint, the dashboard and the meters of policies that limit the calls in flight. */
class InFlightEndpointTests {

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits, ratelimitdashboard
              endpoint.ratelimits: { access: unrestricted, show-values: always }
            ratelimit:
              policies:
                exports: { key: user, in-flight: 2, paths: /exports }
                chat: { key: user, rate: 60/1m, in-flight: 4, paths: /chat }
                pool: { paths: /pool, in-flight: 8, tiers: { pro: { in-flight: 16 } }, tier: role }
                plain: { rate: 5/1m, paths: /plain }
                uploads: { key: user, rate: 60/1m, paths: /uploads, overrides: [{ keys: [alice], in-flight: 3 }] }
            """;

    private static final String ENDPOINT = "/actuator/ratelimits";

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Meters.class);

    private final Throttlers throttlers = server.bean(Throttlers.class);

    @AfterEach
    void changeBack() {
        throttlers
                .all()
                .forEach(throttler ->
                        throttler.reconfigure(throttler.configured().spec()));
    }

    private static Response post(String policy, String json) {
        return server.http()
                .send("POST " + ENDPOINT + policy + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: " + json.getBytes(StandardCharsets.ISO_8859_1).length + "\r\n\r\n" + json);
    }

    private static <T> T read(String path, String found) {
        Response response = server.http().get(ENDPOINT + path);
        assertThat(response.status()).as(response.body()).isEqualTo(200);
        return JsonPath.read(response.body(), found);
    }

    private Decision run(String policy, String... key) {
        return throttlers.get(policy).forKey(key).decide(1);
    }

    @Test
    void theEndpointShowsWhatRuns() {
        List<Decision> running = List.of(run("exports", "alice"), run("exports", "alice"), run("exports", "bob"));

        assertThat(EndpointOf.policy("/exports"))
                .containsEntry("inFlight", 3)
                .containsEntry("limit", Map.of("inFlight", 2));
        assertThat(InFlightEndpointTests.<Map<String, Object>>read("/exports?key=alice", "$"))
                .containsEntry("inFlight", 2)
                .containsEntry("limit", Map.of("inFlight", 2));
        assertThat(EndpointOf.policy("/pool"))
                .containsEntry("inFlight", 0)
                .containsEntry("limit", Map.of("inFlight", 8))
                .containsEntry("tiers", Map.of("pro", Map.of("inFlight", 16)));
        assertThat(EndpointOf.policy("/chat"))
                .containsEntry("inFlight", 0)
                .containsEntry("limit", Map.of("rate", "60/1m", "capacity", 60, "refill", "greedy", "inFlight", 4));
        assertThat(EndpointOf.policy("/plain")).doesNotContainKey("inFlight");
        running.forEach(Decision::release);
        assertThat(EndpointOf.policy("/exports")).containsEntry("inFlight", 0);
    }

    @Test
    void anOverrideMayHaveTheOnlyNumber() {
        Map<String, Object> limit = read("/uploads?key=alice", "$.limit");
        assertThat(limit).containsEntry("inFlight", 3);
        assertThat(EndpointOf.policy("/uploads")).containsEntry("inFlight", 0);
        assertThat(server.bean(MeterRegistry.class)
                        .get("ratelimit.in.flight")
                        .tag("policy", "uploads")
                        .gauge()
                        .value())
                .isZero();
        assertThat(server.bean(MeterRegistry.class)
                        .get("ratelimit.held")
                        .tag("policy", "uploads")
                        .timer()
                        .count())
                .isZero();

        assertThat(post("/uploads", "{\"rate\": \"6/1m\"}").status()).isEqualTo(200);
        assertThat(InFlightEndpointTests.<Map<String, Object>>read("/uploads?key=alice", "$.limit"))
                .containsEntry("rate", "6/1m")
                .containsEntry("inFlight", 3);
    }

    /** Names the type of a response, which the JSON path can't infer. */
    private static final class EndpointOf {

        static Map<String, Object> policy(String path) {
            return read(path, "$");
        }
    }

    @Test
    void theNumberCanBeChanged() {
        Response changed = post("/exports", "{\"inFlight\": 5}");

        assertThat(changed.status()).as(changed.body()).isEqualTo(200);
        assertThat(JsonPath.<Integer>read(changed.body(), "$.before.inFlight")).isEqualTo(2);
        assertThat(JsonPath.<Integer>read(changed.body(), "$.now.inFlight")).isEqualTo(5);
        assertThat(JsonPath.<Integer>read(changed.body(), "$.now.changed.inFlight"))
                .isEqualTo(2);
        assertThat(throttlers.get("exports").policy().spec()).isEqualTo(BucketSpec.inFlight(5));
        assertThat(post("/chat", "{\"inFlight\": 1, \"rate\": \"30/1m\"}").status())
                .isEqualTo(200);
        assertThat(throttlers.get("chat").policy().spec())
                .isEqualTo(BucketSpec.of("30/1m").withInFlight(1));
    }

    @Test
    void aChangeThatTheLimitCanNotHaveIsRejected() {
        assertRejected(post("/exports", "{\"rate\": \"5/1m\"}"), "the limit has no rate and no capacity");
        assertRejected(post("/plain", "{\"inFlight\": 5}"), "the limit has no 'inFlight' that could be changed");
        assertRejected(post("/exports", "{\"inFlight\": 0}"), "in-flight must be between 1 and 1,000,000, but was 0");
        assertRejected(post("/exports", "{\"inFlight\": \"many\"}"), "inFlight must be a whole number");
        assertRejected(
                server.http().request("DELETE", ENDPOINT + "/exports?key=alice"), "requests in flight can't be reset");
    }

    private static void assertRejected(Response response, String detail) {
        assertThat(response.status()).as(response.body()).isEqualTo(400);
        assertThat(JsonPath.<String>read(response.body(), "$.detail")).contains(detail);
    }

    @Test
    void theDashboardShowsWhatRuns() {
        Decision running = run("exports", "alice");

        Response page = server.http().get("/actuator/ratelimitdashboard/data");

        assertThat(JsonPath.<List<Integer>>read(page.body(), "$.policies[?(@.name == 'exports')].running"))
                .as(page.body())
                .containsExactly(1);
        assertThat(JsonPath.<List<Integer>>read(page.body(), "$.policies[?(@.name == 'exports')].limit.inFlight"))
                .containsExactly(2);
        running.release();
    }

    @Test
    void theMetersShowWhatRunsAndForHowLong() {
        MeterRegistry meters = server.bean(MeterRegistry.class);
        double before =
                meters.get("ratelimit.held").tag("policy", "exports").timer().count();
        Decision running = run("exports", "alice");
        assertThat(meters.get("ratelimit.in.flight")
                        .tag("policy", "exports")
                        .gauge()
                        .value())
                .isEqualTo(1);

        server.advance(Duration.ofSeconds(3));
        running.release();

        assertThat(meters.get("ratelimit.in.flight")
                        .tag("policy", "exports")
                        .gauge()
                        .value())
                .isZero();
        assertThat(meters.get("ratelimit.held").tag("policy", "exports").timer().count())
                .isEqualTo((long) before + 1);
        assertThat(meters.get("ratelimit.held").tag("policy", "exports").timer().max(TimeUnit.SECONDS))
                .isEqualTo(3);
        assertThat(meters.find("ratelimit.in.flight").tag("policy", "plain").gauge())
                .isNull();
    }

    @Configuration(proxyBeanMethods = false)
    static class Meters {

        @Bean
        MeterRegistry meters() {
            return new SimpleMeterRegistry();
        }
    }
}
