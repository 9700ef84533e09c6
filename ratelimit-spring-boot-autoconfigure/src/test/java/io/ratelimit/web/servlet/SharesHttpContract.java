package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.InstanceOfAssertFactories.MAP;
import static org.awaitility.Awaitility.await;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.BucketSpec;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** Requests of policies with guaranteed shares. */
abstract class SharesHttpContract {

    static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits
              endpoint.ratelimits: { access: unrestricted, show-values: always }
            ratelimit:
              policies:
                crowd:
                  rate: 10/1d
                  capacity: 20
                  in-flight: 1
                  guaranteed: { key: path-variable:tenant, rate: 2/1d, capacity: 3, for: 4 }
                  paths: /crowd/**
                api:
                  rate: 10/1d
                  capacity: 20
                  guaranteed: { key: path-variable:tenant, rate: 2/1d, capacity: 3, for: 4 }
                  paths: /api/**
                  refund-on: 404
                watched:
                  rate: 4/1d
                  guaranteed: { key: path-variable:tenant, rate: 1/1d, for: 2 }
                  mode: shadow
                  paths: /watched/**
                shop:
                  rate: 10/1d
                  capacity: 20
                  tier: header:kind
                  shares:
                    checkout: { guaranteed: 5/1d, capacity: 6 }
                    batch: { leave: 50% }
                  paths: /shop
                patient:
                  rate: 10/1d
                  capacity: 20
                  guaranteed: { key: path-variable:tenant, rate: 2/1d, capacity: 3, for: 4 }
                  max-wait: 1d
                  paths: /patient/**
                called:
                  rate: 6/1d
                  guaranteed: { key: header:tenant, rate: 2/1d, for: 2 }
                  applies-to: annotated
                named:
                  rate: 6/1d
                  tier: header:kind
                  shares: { checkout: { guaranteed: 2/1d } }
                  applies-to: annotated
            """;

    abstract TestServer server();

    @BeforeEach
    void fill() {
        Throttlers throttlers = server().bean(Throttlers.class);
        throttlers.all().forEach(throttler -> throttler.forKey().reset());
    }

    private Response get(String path, String... headers) {
        return server().http().get(path, headers);
    }

    private int allowed(String path, String... headers) {
        int allowed = 0;
        while (get(path, headers).status() == 200) {
            allowed++;
        }
        return allowed;
    }

    @Test
    void aTenantAloneHasAllButWhatIsGuaranteedToOthers() {
        assertThat(allowed("/api/alice")).isEqualTo(20 - 4 * 3 + 3);
        assertThat(allowed("/api/alice")).isZero();
        assertThat(allowed("/api/bob")).isEqualTo(3);
        assertThat(allowed("/api/carol")).isEqualTo(3);
        assertThat(allowed("/api/dave")).isEqualTo(3);
        assertThat(allowed("/api/erin")).as("the fifth of four keys").isZero();
    }

    @Test
    void aRejectionNamesTheSoonerMoment() {
        assertThat(allowed("/api/alice")).isEqualTo(11);
        Response rejected = get("/api/alice");
        assertThat(rejected.status()).isEqualTo(429);
        assertThat(rejected.header("RateLimit")).startsWith("\"api\";r=0;t=345"); // the pool is short of four tokens
        assertThat(rejected.header("RateLimit-Policy")).isEqualTo("\"api\";q=20;w=172800");
        assertThat(allowed("/api/bob")).isEqualTo(3);
        Response lane = get("/api/bob");
        assertThat(lane.header("RateLimit-Policy")).isEqualTo("\"api\";q=3;w=129600");
        assertThat(lane.header("RateLimit")).startsWith("\"api\";r=0;t=4");
        assertThat(Integer.parseInt(lane.header("Retry-After"))).isBetween(43_100, 43_200);
    }

    @Test
    void anotherSpellingOfATenantHasTheSameShare() {
        assertThat(allowed("/api/zo%C3%AB")).isEqualTo(11);
        for (String spelling : List.of("/api/ZO%C3%8B", "/api/%7Ao%c3%ab", "/api/zo%C3%AB;v=1")) {
            assertThat(get(spelling).status()).as(spelling).isEqualTo(429);
        }
    }

    @Test
    void aPolicyInShadowModeRejectsNoTenant() {
        for (int i = 0; i < 8; i++) {
            assertThat(get("/watched/alice").status()).isEqualTo(200);
        }
        assertThat(this.<Map<String, Object>>actuator("/watched", "$.deniedMost[0]"))
                .containsEntry("denied", 5)
                .containsEntry("shadow", true);
    }

    @Test
    void aRefundFillsTheShare() {
        assertThat(allowed("/api/alice")).isEqualTo(11);
        assertThat(get("/api/bob/missing").status()).isEqualTo(404);
        assertThat(allowed("/api/bob")).isEqualTo(3);
    }

    @Test
    void namedSharesAreKeptAndLeft() {
        assertThat(allowed("/shop", "kind: batch")).isEqualTo(10);
        assertThat(allowed("/shop")).isEqualTo(4);
        assertThat(allowed("/shop", "kind: other")).isZero();
        assertThat(allowed("/shop", "kind: Checkout")).isEqualTo(6);
    }

    @Test
    void annotatedMethodsHaveShares() {
        assertThat(allowed("/called")).isEqualTo(2);
        assertThat(allowed("/called", "tenant: alice")).isEqualTo(2);
        assertThat(allowed("/called", "tenant: bob")).isEqualTo(2);
        assertThat(allowed("/called", "tenant: carol")).isZero();
        assertThat(allowed("/named")).isEqualTo(4);
        assertThat(allowed("/named", "kind: checkout")).isEqualTo(2);
        fill();
        assertThat(allowed("/named")).isEqualTo(4);
        assertThat(allowed("/checkout")).isEqualTo(2);
    }

    @Test
    void aRateBelowTheSharesIsRejected() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> server().bean(Throttlers.class).get("api").reconfigure(BucketSpec.of("7/1d")))
                .withMessageContaining("raise the rate to 8/1d");
        assertRejected("{\"rate\": \"7/1d\"}", "raise the rate to 8/1d");
        assertRejected("{\"capacity\": 11}", "raise the capacity to 12");
        assertRejected("{\"tier\": \"alice\", \"rate\": \"9/1d\"}", "'api' has no tiers");
    }

    void assertRejected(String change, String detail) {
        Response rejected = server().http()
                .send("POST /actuator/ratelimits/api HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: " + change.length() + "\r\n\r\n" + change);
        assertThat(rejected.status()).as(rejected.body()).isBetween(400, 404);
        assertThat(rejected.body()).contains(detail);
    }

    private <T> T actuator(String path, String found) {
        Response response = get("/actuator/ratelimits" + path);
        assertThat(response.status()).as(response.body()).isEqualTo(200);
        return JsonPath.read(response.body(), found);
    }

    @Test
    void theActuatorShowsWhatATenantCanStillGet() {
        assertThat(this.<Integer>actuator("/api", "$.limit.available")).isEqualTo(8);
        Map<String, Object> full = actuator("/api?key=alice", "$");
        assertThat(full).containsEntry("guaranteed", "2/1d, capacity 3");
        assertThat(full).extractingByKey("limit").asInstanceOf(MAP).containsEntry("available", 8);
        assertThat(full).extractingByKey("key").asInstanceOf(MAP).containsEntry("parts", List.of("alice"));

        assertThat(allowed("/api/alice")).isEqualTo(11);

        assertThat(this.<Integer>actuator("/api", "$.limit.available")).isZero();
        assertThat(this.<Integer>actuator("/api?key=ALICE", "$.limit.available"))
                .isZero();
        assertThat(this.<Map<String, Object>>actuator("/api?key=bob", "$.limit"))
                .containsEntry("available", 3)
                .containsEntry("capacity", 3)
                .containsEntry("rate", "2/1d");
        assertThat(get("/actuator/ratelimits/api?key=a&key=b").status()).isEqualTo(400);
    }

    @Test
    void theActuatorShowsSharesWithNames() {
        assertThat(this.<Integer>actuator("/shop?tier=batch", "$.limit.available"))
                .isEqualTo(10);
        assertThat(allowed("/shop")).isEqualTo(14);
        assertThat(this.<Integer>actuator("/shop?tier=batch", "$.limit.available"))
                .isZero();
        assertThat(this.<Integer>actuator("/shop?tier=checkout", "$.limit.available"))
                .isEqualTo(6);
        assertThat(this.<String>actuator("/shop?tier=checkout", "$.guaranteed")).isEqualTo("5/1d, capacity 6");
        assertThat(get("/actuator/ratelimits/shop?tier=other").status()).isEqualTo(404);
        assertThat(get("/actuator/ratelimits/shop?key=x").status()).isEqualTo(400);
    }

    @Test
    void theKeysDeniedMostAreTenants() {
        assertThat(allowed("/api/mallory")).isEqualTo(11);
        for (int i = 0; i < 30; i++) {
            get("/api/mallory");
        }
        assertThat(this.<List<String>>actuator("/api", "$.deniedMost[0].key.parts"))
                .containsExactly("mallory");
    }

    @Test
    void allSharesAreResetTogether() {
        assertThat(allowed("/api/alice")).isEqualTo(11);
        Response one = server().http().request("DELETE", "/actuator/ratelimits/api?key=alice");
        assertThat(one.status()).isEqualTo(400);
        assertThat(one.body()).contains("a guaranteed share can't be reset alone");
        assertThat(server().http().request("DELETE", "/actuator/ratelimits/api").status())
                .isEqualTo(200);
        assertThat(allowed("/api/alice")).isEqualTo(11);
    }

    @Test
    void aRequestTakesASlotAndTokensOrNothing() {
        try (RawHttp.Connection running = server().http().open().write(RawHttp.text("GET", "/crowd/alice?wait=true"))) {
            await().until(() -> this.<Integer>actuator("/crowd", "$.inFlight") == 1);
            for (int i = 0; i < 3; i++) {
                assertThat(get("/crowd/bob").status()).isEqualTo(429);
            }
            assertThat(this.<Integer>actuator("/crowd", "$.limit.available")).isEqualTo(7);
            Api.GO_ON.release();
            assertThat(running.read().status()).isEqualTo(200);
        }
        await().until(() -> this.<Integer>actuator("/crowd", "$.inFlight") == 0);
        assertThat(allowed("/crowd/alice")).isEqualTo(10);
        for (int i = 0; i < 3; i++) {
            assertThat(get("/crowd/alice").status()).isEqualTo(429);
        }
        assertThat(this.<Integer>actuator("/crowd", "$.inFlight")).isZero();
        assertThat(allowed("/crowd/bob")).isEqualTo(3);
    }

    @Test
    void aRequestWaitsForItsOwnShareAndTakesNothingFromOthers() {
        for (int i = 0; i < 11; i++) {
            assertThat(get("/patient/alice").status()).isEqualTo(200);
        }
        try (RawHttp.Connection first = waiting("/patient/alice", 1);
                RawHttp.Connection second = waiting("/patient/alice", 2)) {
            Response third = get("/patient/alice");
            assertThat(third.status()).isEqualTo(429);
            assertThat(third.body()).contains("would have to wait too long for 'patient' policy");
            assertThat(third.header("RateLimit"))
                    .startsWith("\"patient\";r=0;t=345"); // the pool is short of four tokens
            for (String other : List.of("bob", "carol", "dave")) {
                for (int i = 0; i < 3; i++) {
                    assertThat(get("/patient/" + other).status()).as(other).isEqualTo(200);
                }
            }
            assertThat(get("/patient/erin").status())
                    .as("the fifth of four keys")
                    .isEqualTo(429);
            server().advance(Duration.ofHours(12));
            assertThat(first.read().status()).isEqualTo(200);
            assertThat(server().bean(ManualTimeSource.class).waiting()).isEqualTo(1);
            server().advance(Duration.ofHours(12));
            assertThat(second.read().status()).isEqualTo(200);
        }
    }

    private RawHttp.Connection waiting(String path, int waiting) {
        RawHttp.Connection connection = server().http().open().write(RawHttp.text("GET", path));
        await().until(() -> server().bean(ManualTimeSource.class).waiting() == waiting);
        return connection;
    }

    @RestController
    static class Api {

        static final Semaphore GO_ON = new Semaphore(0);

        private final AtomicInteger calls = new AtomicInteger();

        @GetMapping("/crowd/{tenant}")
        int crowd(@RequestParam(defaultValue = "false") boolean wait) throws InterruptedException {
            if (wait) {
                GO_ON.acquire();
            }
            return calls.incrementAndGet();
        }

        @GetMapping({"/api/{tenant}", "/watched/{tenant}", "/patient/{tenant}"})
        int api() {
            return calls.incrementAndGet();
        }

        @GetMapping("/api/{tenant}/missing")
        @ResponseStatus(HttpStatus.NOT_FOUND)
        void missing() {}

        @GetMapping("/shop")
        int shop() {
            return calls.incrementAndGet();
        }

        @GetMapping("/called")
        @RateLimited("called")
        public int called() {
            return calls.incrementAndGet();
        }

        @GetMapping("/named")
        @RateLimited("named")
        public int named() {
            return calls.incrementAndGet();
        }

        @GetMapping("/checkout")
        @RateLimited(policy = "named", tier = "'checkout'")
        public int checkout() {
            return calls.incrementAndGet();
        }
    }
}
