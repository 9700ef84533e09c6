package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimit.BucketSpec;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Rate;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.key.LimitResolver;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Policies whose requests have limits of their own, from a bean. */
@ExtendWith(OutputCaptureExtension.class)
class OwnLimitTests {

    private static final String YAML = """
            management.endpoints.web.exposure.include: ratelimits
            ratelimit:
              exclude-paths: /actuator/**
              policies:
                plans:
                  key: user
                  rate: 2/1h
                  limit: bean:plans
                  tiers:
                    pro: { rate: 4/1h }
                  tier: role
                  overrides:
                    - { keys: [boss], rate: 6/1h }
                  paths: /api
                batches: { key: user, rate: 2/1h, refill: interval, limit: "bean:plans", paths: /batches }
                slots: { key: user, in-flight: 4, refill: interval, limit: "bean:plans", paths: /slots }
                quota: { key: user, rate: 2/month, refill: calendar, limit: "bean:plans", paths: /quota }
                dear: { key: user, rate: 20/1h, cost: 10, limit: "bean:plans", paths: /dear }
                whole: { rate: 2/1h, limit: "bean:plans", paths: /whole }
                pairs: { key: [user, endpoint], rate: 2/1h, limit: "bean:plans", paths: /pairs }
                watched: { key: user, rate: 1/1h, limit: "bean:plans", paths: /watched, mode: shadow }
                called: { applies-to: annotated, key: user, rate: 1/1h, limit: "bean:plans" }
            """;

    private static final Map<String, String> PLANS = new ConcurrentHashMap<>();

    /** What the bean does once, before it answers for a user. */
    private static final Map<String, Runnable> BEFORE = new ConcurrentHashMap<>();

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, RoleUsers.class, Plans.class, Api.class);

    @BeforeEach
    void noPlans() {
        PLANS.clear();
    }

    private static int status(String path, String user) {
        return server.http().get(path, basic(user)).status();
    }

    private static int allowed(String path, String user) {
        int allowed = 0;
        while (status(path, user) == 200) {
            allowed++;
        }
        return allowed;
    }

    private static double failures(String policy) {
        return server.bean(MeterRegistry.class)
                .get("ratelimit.events")
                .tags("policy", policy, "event", "limit-failure")
                .counter()
                .count();
    }

    @Test
    void eachCustomerHasItsOwnLimit() {
        PLANS.putAll(Map.of("alice", "5/1h", "bob", "3/1h"));

        assertThat(allowed("/api", "alice")).isEqualTo(5);
        assertThat(allowed("/api", "bob")).isEqualTo(3);
        assertThat(allowed("/api", "carol")).as("without a plan").isEqualTo(2);
    }

    @Test
    void aBeanThatThrowsAnErrorFailsToo() {
        double before = failures("plans");
        BEFORE.put("alice", () -> {
            throw new NoClassDefFoundError("on purpose");
        });
        assertThat(status("/api", "alice")).isEqualTo(200);
        assertThat(failures("plans")).isEqualTo(before + 1);
    }

    @Test
    void anOwnLimitBeatsTheTierButNoOverride() {
        PLANS.putAll(Map.of("pro", "9/1h", "boss", "9/1h"));

        assertThat(allowed("/api", "pro")).isEqualTo(9);
        assertThat(allowed("/api", "boss")).isEqualTo(6);
        server.refill();
        PLANS.clear();
        assertThat(allowed("/api", "pro")).isEqualTo(4);
    }

    @Test
    void headersShowTheCustomersOwnLimit() {
        PLANS.put("alice", "5/1h");

        RawHttp.Response response = server.http().get("/api", basic("alice"));

        assertThat(response.header("RateLimit-Policy")).isEqualTo("\"plans\";q=5;w=3600");
        assertThat(response.header("RateLimit")).isEqualTo("\"plans\";r=4;t=720");
    }

    @Test
    void aChangeHoldsFromTheNextRequestOnAndKeepsTheTokens() {
        PLANS.put("alice", "5/1h");
        assertThat(status("/api", "alice")).isEqualTo(200);
        PLANS.put("alice", "100/1h");
        assertThat(allowed("/api", "alice")).as("what was left of five").isEqualTo(4);

        server.advance(Duration.ofMinutes(6));
        assertThat(allowed("/api", "alice")).as("a tenth of a hundred").isEqualTo(10);

        server.refill();
        PLANS.put("alice", "100/1h");
        assertThat(status("/api", "alice")).isEqualTo(200);
        PLANS.put("alice", "3/1h");
        assertThat(allowed("/api", "alice")).isEqualTo(3);
    }

    @Test
    void aSlowBeanNeverLiftsTheLimit() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        CompletableFuture<Void> reply = new CompletableFuture<>();
        BEFORE.put("alice", () -> {
            asked.countDown();
            reply.join();
        });
        CompletableFuture<Integer> slow = CompletableFuture.supplyAsync(() -> status("/api", "alice"));
        asked.await();

        assertThat(allowed("/api", "alice")).as("meanwhile").isEqualTo(2);
        reply.complete(null);
        assertThat(slow.get()).isEqualTo(429);
    }

    @Test
    void aFailingBeanNeverLiftsTheLimit(CapturedOutput output) {
        double before = failures("plans");
        PLANS.put("alice", "5/1h");
        assertThat(allowed("/api", "alice")).isEqualTo(5);

        for (String wrong : new String[] {"0/1h", "1/400d", "1000000000001/1d", "nonsense"}) {
            PLANS.put("alice", wrong);
            assertThat(status("/api", "alice")).as(wrong).isEqualTo(429);
        }
        PLANS.put("bob", "nonsense");
        assertThat(allowed("/api", "bob")).isEqualTo(2);

        assertThat(failures("plans") - before).isEqualTo(7);
        server.advance(Duration.ofSeconds(10));
        assertThat(output)
                .contains("Throttle policy 'plans' could not determine its limit, so the policy's own applied"
                        + " (java.lang.IllegalArgumentException)")
                .doesNotContain("nonsense");
    }

    @Test
    void theReasonOfARefusedLimitIsLogged(CapturedOutput output) {
        PLANS.put("alice", "5/1h");
        for (int i = 0; i < 2; i++) {
            status("/quota", "alice");
            server.advance(Duration.ofSeconds(10));
        }
        assertThat(output)
                .contains("Throttle policy 'quota' could not determine its limit, so the policy's own applied"
                        + " (its period isn't that of the policy's calendar)");
    }

    @Test
    void aCapacityBelowTheCostIsAFailure() {
        double before = failures("dear");
        PLANS.put("alice", "9/1h");
        PLANS.put("bob", "30/1h");

        assertThat(allowed("/dear", "alice")).isEqualTo(2);
        assertThat(allowed("/dear", "bob")).isEqualTo(3);
        assertThat(failures("dear") - before).isEqualTo(3);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/batches", "/slots"})
    void theRefillIsThePolicys(String path) {
        PLANS.put("alice", "5/1h");
        assertThat(allowed(path, "alice")).isEqualTo(5);

        server.advance(Duration.ofMinutes(59));
        assertThat(status(path, "alice")).isEqualTo(429);
        server.advance(Duration.ofMinutes(1));
        assertThat(allowed(path, "alice")).isEqualTo(5);
    }

    @Test
    void aQuotaOfTheMonthIsChangedOnlyToAnotherOfTheMonth() {
        double before = failures("quota");
        PLANS.put("alice", "5/month");
        PLANS.put("bob", "5/1d");
        assertThat(allowed("/quota", "alice")).isEqualTo(5);
        assertThat(allowed("/quota", "bob")).isEqualTo(2);
        assertThat(failures("quota") - before).isEqualTo(3);

        PolicyThrottler quota = server.bean(Throttlers.class).get("quota");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> quota.reconfigure(spec -> spec.withRate(Rate.of("5/day"))))
                .withMessage("the period of 'quota' must stay that of its calendar, as in 2/month, but was 5/1d");
    }

    @Test
    void theOneBucketOfAGlobalPolicyAndAKeyOfSeveralPartsMayHaveAnOwnLimitToo() {
        PLANS.put("alice", "5/1h");

        assertThat(allowed("/whole", "alice")).isEqualTo(5);
        assertThat(status("/whole", "bob")).isEqualTo(429);
        assertThat(allowed("/pairs", "alice")).isEqualTo(5);
    }

    @Test
    void aShadowPolicyCountsByTheOwnLimit() {
        PLANS.put("alice", "3/1h");
        double before = shadowDenied();
        for (int i = 0; i < 5; i++) {
            assertThat(status("/watched", "alice")).isEqualTo(200);
        }
        assertThat(shadowDenied() - before).isEqualTo(2);
    }

    private static double shadowDenied() {
        return server.bean(MeterRegistry.class)
                .get("ratelimit.decisions")
                .tags("policy", "watched", "outcome", "shadow-denied")
                .counter()
                .count();
    }

    @Test
    void callsOfAnnotatedMethodsHaveTheLimitOfTheirRequest() {
        PLANS.put("alice", "3/1h");

        assertThat(allowed("/called", "alice")).isEqualTo(3);
        assertThat(allowed("/called", "bob")).isEqualTo(1);
        assertThat(allowed("/keyed", "alice")).isEqualTo(3);
    }

    @Test
    void theEndpointFindsTheBucketAndNamesTheSourceOfTheLimit() {
        PLANS.put("alice", "5/1h");
        assertThat(allowed("/api", "alice")).isEqualTo(5);

        assertThat(server.http()
                        .get("/actuator/ratelimits/plans?key=alice", basic("admin"))
                        .body())
                .contains("\"limitBy\":\"bean:plans\"")
                .contains("\"rate\":\"2/1h\"", "\"available\":0");

        server.bean(Throttlers.class).reset("plans", "alice");
        assertThat(allowed("/api", "alice")).isEqualTo(5);
    }

    @Configuration(proxyBeanMethods = false)
    static class Plans {

        @Bean
        MeterRegistry meterRegistry() {
            return new SimpleMeterRegistry();
        }

        /** The plan of the user, as the text of a rate. */
        @Bean
        LimitResolver plans() {
            return request -> {
                String user = Objects.requireNonNull(request.user());
                Runnable before = BEFORE.remove(user);
                if (before != null) {
                    before.run();
                }
                String plan = PLANS.get(user);
                return plan == null ? null : BucketSpec.of(plan);
            };
        }
    }

    @RestController
    static class Api {

        @GetMapping({"/api", "/quota", "/batches", "/slots", "/dear", "/whole", "/pairs", "/watched"})
        String answer() {
            return "done";
        }

        @GetMapping("/called")
        @RateLimited("called")
        public String called() {
            return "done";
        }

        @GetMapping("/keyed")
        @RateLimited(policy = "called", key = "'constant'")
        public String keyed() {
            return "done";
        }
    }
}
