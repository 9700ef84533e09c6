package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** Requests of policies with guaranteed shares. */
abstract class SharesHttpContract {

    static final String YAML = """
            ratelimit:
              policies:
                api:
                  rate: 10/1d
                  capacity: 20
                  guaranteed: { key: path-variable:tenant, rate: 2/1d, capacity: 3, for: 4 }
                  paths: /api/**
                  refund-on: 404
                shop:
                  rate: 10/1d
                  capacity: 20
                  tier: header:kind
                  shares:
                    checkout: { guaranteed: 5/1d, capacity: 6 }
                    batch: { leave: 50% }
                  paths: /shop
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
    }

    @RestController
    static class Api {

        private final AtomicInteger calls = new AtomicInteger();

        @GetMapping("/api/{tenant}")
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
