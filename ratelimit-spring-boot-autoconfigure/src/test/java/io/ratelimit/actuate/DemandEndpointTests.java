package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.redis.TestRedis;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import redis.embedded.RedisServer;

/** The demand of policies, as the actuator endpoint shows it. */
@Tag("slow")
class DemandEndpointTests {

    private static final String EXPOSED = """
            management.endpoints.web.exposure.include: ratelimits
            """;
    private static final String POLICIES = """
            ratelimit:
              policies:
                named:
                  key: query:name
                  rate: 10/1m
                  mode: shadow
                  paths: /named
                  tiers: { pro: { rate: 20/1m } }
                  tier: query:plan
                enforced: { key: query:name, rate: 2/1m, paths: /enforced }
                refunded: { key: query:name, rate: 2/1m, paths: /refunded, refund-on: 2xx, mode: shadow }
            """;

    @AutoClose
    private TestServer server;

    private void start(String... yaml) {
        server = TestServer.open(String.join("", yaml), Api.class).start();
    }

    @Test
    void theDemandIsThatOfTheRequestsInMemory() {
        start(EXPOSED, POLICIES);
        showsTheDemand();
    }

    @Test
    void theDemandIsThatOfTheRequestsOnRedis() throws IOException {
        int port = TestRedis.freePort();
        RedisServer redis = TestRedis.serverAt(port);
        try {
            start(EXPOSED, POLICIES, "  backend: redis\nspring.data.redis.port: " + port + "\n");
            showsTheDemand();
        } finally {
            redis.stop();
        }
    }

    private void showsTheDemand() {
        for (int client = 2; client <= 40; client++) {
            for (int i = 0; i < client; i++) {
                get("/named?name=" + client);
            }
        }
        for (int i = 0; i < 30; i++) {
            get("/named?name=alice&plan=pro");
        }
        assertThat(JsonPath.<String>read(
                        get("/actuator/ratelimits/named/demand?touch=10%25").body(), "$.demand.noSuggestion"))
                .isEqualTo(
                        "too little traffic yet: a limit is suggested after ten minutes with requests of at least 30 keys");
        server.advance(Duration.ofMinutes(60));
        get("/named?name=1");
        Response answer = get("/actuator/ratelimits/named/demand?touch=10%25&within=1m");
        assertThat(answer.status()).as(answer.body()).isEqualTo(200);
        Map<String, Object> demand = JsonPath.read(answer.body(), "$.demand");
        assertThat(demand).containsEntry("keys", 40).containsEntry("sample", 40).containsEntry("requests", 820);
        assertThat(demand).containsEntry("measuredMs", 3_600_000).doesNotContainKey("noSuggestion");
        assertThat(demand.get("touched").toString()).doesNotContain("requestsAtMost");
        assertThat(JsonPath.<Map<String, Object>>read(demand, "$.suggestion.touched"))
                .doesNotContainKey("requests");
        assertThat(JsonPath.<Number>read(demand, "$.suggestion.touched.requestsAtMost")
                        .doubleValue())
                .isGreaterThan(10.0 / 820);
        assertThat(JsonPath.<Integer>read(demand, "$.touched.keys")).isEqualTo(30);
        assertThat(JsonPath.<Double>read(demand, "$.touched.share")).isEqualTo(0.75);
        assertThat(JsonPath.<Double>read(demand, "$.touched.requests")).isEqualTo(465.0 / 820);
        assertThat(JsonPath.<List<String>>read(demand, "$.curves[*].rate"))
                .containsExactly("5/8m", "5/4m", "5/2m", "5/1m", "10/1m", "20/1m", "40/1m", "80/1m", "160/1m");
        assertThat(JsonPath.<Integer>read(demand, "$.curves[4].capacities.p50.capacity"))
                .isEqualTo(20);
        assertThat(JsonPath.<Integer>read(demand, "$.curves[4].capacities.max.capacity"))
                .isEqualTo(40);
        assertThat(JsonPath.<Integer>read(demand, "$.suggestion.capacity")).isEqualTo(36);
        assertThat(JsonPath.<Integer>read(demand, "$.suggestion.touched.keys")).isEqualTo(4);
        assertThat(JsonPath.<Boolean>read(demand, "$.suggestion.outermost")).isTrue();
        assertThat(JsonPath.<Integer>read(answer.body(), "$.tiers.pro.curves[4].capacities.max.capacity"))
                .isEqualTo(30);
        assertThat(answer.body()).doesNotContain("alice", "\"note\"");
    }

    @Test
    void theDemandOfAnEnforcedPolicyHasWhatWasDeniedAndANote() {
        start(EXPOSED, POLICIES);
        for (int i = 0; i < 5; i++) {
            get("/enforced?name=alice");
        }
        String answer = get("/actuator/ratelimits/enforced/demand").body();
        assertThat(JsonPath.<Integer>read(answer, "$.demand.curves[4].capacities.max.capacity"))
                .isEqualTo(5);
        assertThat(JsonPath.<String>read(answer, "$.note")).contains("retry");
        assertThat(JsonPath.<String>read(answer, "$.mode")).isEqualTo("enforce");
    }

    @Test
    void theDemandOfAPolicyThatGivesTokensBackIsAnUpperBound() {
        start("management.endpoints.web.exposure.include: ratelimits, ratelimitdashboard\n", POLICIES);
        for (int i = 0; i < 5; i++) {
            get("/refunded?name=alice");
        }
        String answer = get("/actuator/ratelimits/refunded/demand").body();
        assertThat(JsonPath.<String>read(answer, "$.note"))
                .startsWith("this policy gives tokens back")
                .contains("upper bounds");
        String page = get("/actuator/ratelimitdashboard/demand").body();
        assertThat(JsonPath.<List<Boolean>>read(page, "$.policies.*[0].refunds"))
                .containsExactlyInAnyOrder(true, false, false);
    }

    @Test
    void theDemandOfACalendarQuotaIsForAnotherRefill() {
        start(
                "management.endpoints.web.exposure.include: ratelimits, ratelimitdashboard\n",
                "ratelimit.policies.quota: { mode: shadow, rate: 5/day, refill: calendar, zone: Europe/Berlin }\n");

        assertThat(JsonPath.<String>read(get("/actuator/ratelimits/quota").body(), "$.limit.zone"))
                .isEqualTo("Europe/Berlin");
        assertThat(JsonPath.<String>read(
                        get("/actuator/ratelimits/quota/demand").body(), "$.note"))
                .contains("for 'refill: greedy', without a zone");
        String page = get("/actuator/ratelimitdashboard/demand").body();
        assertThat(JsonPath.<List<Boolean>>read(page, "$.policies.*[0].calendar"))
                .containsExactly(true);
    }

    @Test
    void theDashboardsDataHasASuggestionForEachShareAndTheStepOfThePresentLimit() {
        start("management.endpoints.web.exposure.include: ratelimitdashboard\n", POLICIES);
        for (int client = 2; client <= 40; client++) {
            for (int i = 0; i < client; i++) {
                get("/named?name=" + client);
            }
        }
        assertThat(JsonPath.<List<Boolean>>read(
                        get("/actuator/ratelimitdashboard/demand").body(), "$.policies.named[*].tooLittle"))
                .containsExactly(true, true);
        server.advance(Duration.ofMinutes(70));
        get("/named?name=1");
        String answer = get("/actuator/ratelimitdashboard/demand").body();
        assertThat(JsonPath.<List<Boolean>>read(answer, "$.policies.named[*].tooLittle"))
                .as("the tier has no clients")
                .containsExactly(false, true);
        assertThat(JsonPath.<List<Integer>>read(answer, "$.policies.named[0].suggestions[*].capacity"))
                .containsExactly(40, 40, 40, 38, 36);
        assertThat(JsonPath.<Integer>read(answer, "$.policies.named[0].measuredSeconds"))
                .isEqualTo(4200);
        assertThat(JsonPath.<List<Double>>read(answer, "$.policies.named[0].rates[8].steps[?(@[0] == 10)][2]"))
                .as("a looser limit denies at most what the present one denies")
                .containsOnly(465.0 / 820);
    }

    @Test
    void withoutRequestsThereIsNoSuggestion() {
        start(EXPOSED, POLICIES);
        Map<String, Object> demand =
                JsonPath.read(get("/actuator/ratelimits/named/demand").body(), "$.demand");
        assertThat(demand).containsEntry("keys", 0).doesNotContainKeys("suggestion", "noSuggestion");
    }

    @Test
    void throttlersOfTheApplicationMayMeasureNoDemand() {
        String exposed = "management.endpoints.web.exposure.include: ratelimits, ratelimitdashboard\n";
        server = TestServer.open(exposed + POLICIES, Api.class, OwnThrottlers.class)
                .start();
        assertRejected("enforced/demand", 404, "the application's Throttlers don't call the DemandListener");
        assertThat(JsonPath.<Map<String, Object>>read(
                        get("/actuator/ratelimitdashboard/demand").body(), "$.policies"))
                .isEmpty();
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnThrottlers {

        @Bean
        Throttlers throttlers(ConfiguredPolicies policies, BucketStore store, TimeSource time) {
            return new Throttlers(policies.all(), store, time, ThrottleListener.NONE);
        }
    }

    @Test
    void anInvalidRequestIsAnsweredWithAProblem() {
        start(EXPOSED, POLICIES);
        for (String touch : List.of("60%25", "-1", "some", "NaN")) {
            assertRejected("named/demand?touch=" + touch, 400, "touch must be a share from 0% to 50%");
        }
        for (String within : List.of("5", "1ms", "31d")) {
            assertRejected("named/demand?within=" + within, 400, "within must be a time from 1s to 30d");
        }
        assertRejected("named/demand?tuch=1%25", 400, "unknown parameter; allowed are: touch, within");
        assertRejected("nothing/demand", 404, "no policy has this name");
        assertRejected("named/supply", 404, "a policy has only the path 'demand' to read below it");
    }

    private void assertRejected(String path, int status, String detail) {
        RateLimitsEndpointCalls.assertRejected(get("/actuator/ratelimits/" + path), status, detail);
    }

    @Test
    void keysAreShownAsTheConfigurationAllows() {
        start(EXPOSED, POLICIES, "management.endpoint.ratelimits.show-values: always\n");
        for (int i = 0; i < 60_000; i++) {
            server.bean(Throttlers.class).listener().decided(Decision.of(List.of(Answer.allowed(charge(i)))));
        }
        String answer = get("/actuator/ratelimits/named/demand").body();
        assertThat(JsonPath.<String>read(answer, "$.demand.heaviest[0].key.parts[0]"))
                .isEqualTo("scraper");
        assertThat(JsonPath.<Integer>read(answer, "$.demand.heaviest[0].requests"))
                .isBetween(5_000, 60_000);
    }

    private Charge charge(int i) {
        return server.bean(Throttlers.class)
                .get("named")
                .forKey(i % 2 == 0 ? "scraper" : "client" + i)
                .charge(1);
    }

    @Test
    void nothingIsMeasuredWithoutTheEndpointAndTheDashboard() {
        start(POLICIES);
        assertThat(server.beans(DemandListener.class)).isEmpty();
    }

    @Test
    void thePropertyMeasuresAlsoWithoutAnEndpoint() {
        start(POLICIES, "  demand.enabled: true\n");
        assertThat(server.beans(DemandListener.class)).hasSize(1);
    }

    @Test
    void thePropertySwitchesTheMeasurementOff() {
        start(EXPOSED, POLICIES, "  demand.enabled: false\n");
        assertThat(server.beans(DemandListener.class)).isEmpty();
        assertRejected("named/demand", 404, "'ratelimit.demand.enabled' is false");
    }

    @Test
    void theDashboardAloneIsEnough() {
        start("management.endpoints.web.exposure.include: ratelimitdashboard\n", POLICIES);
        get("/named?name=alice");
        String answer = get("/actuator/ratelimitdashboard/demand").body();
        assertThat(JsonPath.<Integer>read(answer, "$.policies.named[0].sample")).isEqualTo(1);
        assertThat(JsonPath.<List<Integer>>read(answer, "$.policies.named[0].rates[4].quantiles"))
                .containsExactly(1, 1, 1, 1, 1);
        assertThat(JsonPath.<String>read(answer, "$.policies.named[1].tier")).isEqualTo("pro");
    }

    private Response get(String path) {
        return server.http().get(path);
    }

    @RestController
    static class Api {

        @GetMapping({"/named", "/enforced", "/refunded"})
        String get() {
            return "";
        }
    }
}
