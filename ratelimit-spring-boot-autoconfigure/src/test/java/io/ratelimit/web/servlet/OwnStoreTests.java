package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.PlainStore;
import io.ratelimit.TimeSource;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.health.registry.HealthContributorRegistry;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application with its own bucket store, which fails. */
@ExtendWith(OutputCaptureExtension.class)
class OwnStoreTests {

    private static final String YAML = """
            ratelimit:
              on-backend-failure: deny
              policies:
                denied: { rate: 2/1d, paths: /denied }
                allowed: { rate: 2/1d, paths: /allowed, on-backend-failure: allow }
                local: { rate: 2/1d, paths: /local, on-backend-failure: local }
            """;

    @Test
    void whileTheStoreFailsTheRuleOfThePolicyDecides(CapturedOutput output) {
        try (TestServer server = TestServer.open(YAML, Api.class).start()) {
            RawHttp http = server.http();
            assertThat(http.get("/denied").status()).isEqualTo(200);
            server.bean(FailingStore.class).failing = true;

            assertThat(http.get("/denied").status()).isEqualTo(503);
            assertThat(List.of(status(http, "/allowed"), status(http, "/allowed"), status(http, "/allowed")))
                    .containsOnly(200);
            assertThat(List.of(status(http, "/local"), status(http, "/local"), status(http, "/local")))
                    .containsExactly(200, 200, 429);
            assertThat(output)
                    .contains("OwnStoreTests.FailingStore is unavailable (no answer)")
                    .doesNotContain("Redis");
        }
    }

    @Test
    void theHealthShowsTheStore() {
        try (TestServer server = TestServer.open(YAML, Api.class).start()) {
            HealthIndicator health = (HealthIndicator) Objects.requireNonNull(
                    server.bean(HealthContributorRegistry.class).getContributor("ratelimit"));
            Backend backend = server.bean(Backend.class);
            assertThat(health.health().getStatus()).isEqualTo(Status.UP);
            assertThat(health.health().getDetails())
                    .containsEntry("backend", "OwnStoreTests.FailingStore")
                    .containsEntry("condition", Condition.UP);

            server.bean(FailingStore.class).failing = true;
            for (int i = 0; i < 5; i++) {
                assertThat(server.http().get("/denied").status()).isEqualTo(503);
            }
            assertThat(backend.state().condition()).isEqualTo(Condition.DOWN);
            assertThat(health.health().getStatus()).isEqualTo(Status.DOWN);
            assertThat(health.health().getDetails()).containsEntry("refusing", List.of("denied"));
        }
    }

    @Test
    void anUnavailableStoreIsNotCalledButForAProbe() {
        try (TestServer server = TestServer.open(YAML, Api.class).start()) {
            FailingStore store = server.bean(FailingStore.class);
            store.failing = true;
            for (int i = 0; i < 20; i++) {
                server.http().get("/denied");
            }
            assertThat(store.failedCalls).as("the circuit breaker is open").hasValueBetween(5, 8);
        }
    }

    @Test
    void aDenialIsRememberedForAMoment() {
        try (TestServer server = TestServer.open(YAML, Api.class).start()) {
            RawHttp http = server.http();
            assertThat(List.of(status(http, "/denied"), status(http, "/denied"), status(http, "/denied")))
                    .containsExactly(200, 200, 429);
            FailingStore store = server.bean(FailingStore.class);
            store.failing = true;

            assertThat(status(http, "/denied")).as("the store isn't called").isEqualTo(429);
            assertThat(store.failedCalls).hasValue(0);
        }
    }

    @Test
    void metersAndEndpointNameTheBackend() {
        try (TestServer server = TestServer.open(
                        YAML + "management.endpoints.web.exposure.include: ratelimits", Api.class, Meters.class)
                .start()) {
            status(server.http(), "/local");
            server.bean(FailingStore.class).failing = true;
            status(server.http(), "/local");

            MeterRegistry registry = server.bean(MeterRegistry.class);
            assertThat(allowed(registry, "custom")).isEqualTo(1);
            assertThat(allowed(registry, "local")).as("the fallback").isEqualTo(1);
            assertThat(registry.find("ratelimit.available")
                            .tag("policy", "local")
                            .gauge()
                            .value())
                    .as("the store isn't called for a gauge")
                    .isEqualTo(1);
            assertThat(server.http().get("/actuator/ratelimits/local").body())
                    .contains("\"backend\":\"custom\"")
                    .contains("\"onBackendFailure\":\"local\"");
        }
    }

    private static double allowed(MeterRegistry registry, String backend) {
        return registry.get("ratelimit.decisions")
                .tags("policy", "local", "outcome", "allowed", "backend", backend)
                .counter()
                .count();
    }

    private static int status(RawHttp http, String path) {
        return http.get(path).status();
    }

    @Test
    void theStartReportNamesTheStore(CapturedOutput output) {
        TestServer.open(YAML, Api.class).start().close();

        assertThat(output.getOut().lines().filter(line -> line.contains("the application's own OwnStoreTests")))
                .hasSize(3)
                .allMatch(line -> line.contains("in the application's own OwnStoreTests.FailingStore (")
                        && line.contains(" while it fails)"))
                .first()
                .asString()
                .contains(
                        "; buckets in the application's own OwnStoreTests.FailingStore (denies all while it fails); ");
    }

    @RestController
    static class Api {

        @GetMapping({"/denied", "/allowed", "/local"})
        String hello() {
            return "hello";
        }

        @Bean
        FailingStore store(TimeSource time) {
            return new FailingStore(BucketStore.local(time));
        }
    }

    static class Meters {

        @Bean
        MeterRegistry registry() {
            return new SimpleMeterRegistry();
        }
    }

    private static final class FailingStore extends PlainStore {

        private final AtomicInteger failedCalls = new AtomicInteger();
        private volatile boolean failing;

        private FailingStore(BucketStore store) {
            super(store);
        }

        @Override
        protected BucketStore store() {
            if (failing) {
                failedCalls.incrementAndGet();
                throw new BackendException("no answer");
            }
            return super.store();
        }
    }
}
