package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.jayway.jsonpath.JsonPath;
import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.Backend.Condition;
import io.ratelimit.ManualTimeSource;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The actuator of an application with some or all buckets in Redis. */
@Tag("slow")
class RedisActuatorTests {

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits, health
              endpoint.ratelimits.access: unrestricted
              endpoint.health: { show-details: always, show-components: always }
              health.redis.enabled: false
            ratelimit:
              backend: redis
              redis.timeout: 10s
              exclude-paths: /actuator/**
              policies:
                all: { rate: 9/1d }
                named: { key: "path-variable:name", rate: 2/1d }
                here: { rate: 100/1d, backend: local }
                watched: { rate: 100/1d, mode: shadow, on-backend-failure: deny }
                strict: { rate: 100/1d, paths: /strict, on-backend-failure: %s }
            """;

    /** The operations of the endpoint with the status of their answers while Redis is frozen. */
    private static final List<String> OPERATIONS = List.of(
            "503 DELETE /named?key=alice",
            "503 DELETE /all",
            "503 DELETE /all/change",
            "503 POST /all {\"capacity\": 8, \"for\": \"all\"}",
            "200 POST /all {\"capacity\": 8}",
            "200 GET /named?key=alice",
            "200 GET /all",
            "200 GET ");

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    private RedisApplication start(String rule) {
        return RedisApplication.start(redis.port(), YAML.formatted(rule));
    }

    private static <T> T health(RedisApplication application, int status, String found) {
        HttpResponse<String> answer = application.get("/actuator/health");
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(status);
        return JsonPath.read(answer.body(), "$.components.ratelimit" + found);
    }

    private static <T> T ask(RedisApplication application, String path, String found) {
        HttpResponse<String> answer = application.get("/actuator/ratelimits" + path);
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        return JsonPath.read(answer.body(), found);
    }

    @Test
    void bucketsInRedisAreSeenAndForgottenForAll() {
        try (RedisApplication application = start("local");
                RedisApplication other = start("local")) {
            application.status("/alice");
            other.status("/alice");

            assertThat(RedisActuatorTests.<Integer>ask(other, "/named?key=alice", "$.limit.available"))
                    .isZero();
            assertThat(RedisActuatorTests.<String>ask(other, "/named?key=alice", "$.backend.condition"))
                    .isEqualTo("UP");
            assertThat(RedisActuatorTests.<Integer>ask(other, "/all", "$.limit.available"))
                    .isEqualTo(7);
            assertThat(RedisActuatorTests.<Map<String, Object>>ask(application, "/strict", "$.scope"))
                    .containsEntry("backend", "redis")
                    .containsEntry("onBackendFailure", "local");
            assertThat(RedisActuatorTests.<String>ask(application, "", "$.backend.name"))
                    .isEqualTo("Redis");
            assertThat(RedisActuatorTests.<Map<String, Object>>ask(application, "/here", "$.scope"))
                    .containsEntry("backend", "local")
                    .doesNotContainKey("onBackendFailure");

            HttpResponse<String> forgotten = application.request("DELETE", "/actuator/ratelimits/named?key=alice");
            assertThat(forgotten.body()).contains("\"for\":\"all\"");
            assertThat(RedisActuatorTests.<Integer>ask(other, "/named?key=alice", "$.limit.available"))
                    .isEqualTo(2);
        }
    }

    @Test
    void duringAnOutageTheFallbackIsShownAndOtherBucketsAreUnavailable() {
        try (RedisApplication application = start("deny")) {
            application.status("/alice");
            redis.kill();
            await().until(() -> {
                application.status("/bob");
                return application.condition() == Condition.DOWN;
            });

            assertThat(RedisActuatorTests.<String>ask(application, "/named?key=carol", "$.backend.condition"))
                    .isEqualTo("DOWN");
            assertThat(RedisActuatorTests.<Integer>ask(application, "/named?key=carol", "$.limit.available"))
                    .isEqualTo(2);
            Map<String, Object> all = ask(application, "", "$");
            assertThat(JsonPath.<String>read(all, "$.backend.condition")).isEqualTo("DOWN");
            assertThat(JsonPath.<String>read(all, "$.backend.cause")).doesNotContain("127.0.0.1", "lettuce", "netty");
            assertThat(JsonPath.<Map<String, Object>>read(all, "$.policies.named.outage"))
                    .isEqualTo(Map.of("rule", "local", "share", 1.0));
            assertThat(JsonPath.<Map<String, Object>>read(all, "$.policies.strict.outage"))
                    .isEqualTo(Map.of("rule", "deny"));
            assertThat(JsonPath.<Map<String, Object>>read(all, "$.policies.here"))
                    .doesNotContainKey("outage");
            assertThat(JsonPath.<Map<String, Object>>read(all, "$.policies.strict.limit"))
                    .containsEntry("capacity", 100)
                    .doesNotContainKey("available");
            HttpResponse<String> refused = application.request("DELETE", "/actuator/ratelimits/named?key=alice");
            assertThat(refused.statusCode()).isEqualTo(503);
            assertThat(refused.body()).contains("\"detail\":\"Redis is unavailable, and the bucket may still exist\"");
        }
    }

    @Test
    void aPolicyWithoutAFallbackIsUnavailable() {
        String yaml = YAML.replace("rate: 2/1d }", "rate: 2/1d, on-backend-failure: allow }");
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml.formatted("deny"))) {
            redis.kill();
            HttpResponse<String> answer = application.get("/actuator/ratelimits/named?key=alice");
            assertThat(answer.statusCode()).isEqualTo(503);
            assertThat(answer.headers().firstValue("Content-Type")).hasValue("application/problem+json");
            assertThat(answer.body()).contains("Redis is unavailable, and the policy has no fallback bucket");
        }
    }

    /** A request may wait longer for Redis than an operator does. */
    @Tag("timed")
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void whileRedisIsFrozenEachOperationAnswersWithinASecond(String strategy) {
        String yaml = YAML.formatted("deny") + "  redis.strategy: " + strategy + "\n";
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml)) {
            application.status("/alice");
            for (String operation : OPERATIONS) {
                String[] parts = operation.split(" ", 4);
                String path = "/actuator/ratelimits" + parts[2];
                redis.freeze();
                HttpResponse<String> answer = OperatorTimes.answerWithinASecond(() ->
                        parts.length == 4 ? application.post(path, parts[3]) : application.request(parts[1], path));
                redis.thaw();
                assertThat(answer.statusCode()).as(operation + answer.body()).isEqualTo(Integer.parseInt(parts[0]));
            }
        }
    }

    /** No request is sent that would call Redis. */
    @ParameterizedTest
    @CsvSource({"local, 200, UP", "allow, 200, UP", "deny, 503, DOWN"})
    void anOutageShowsWithoutRequestsAndSoDoesItsEnd(String rule, int status, String shown) {
        try (RedisApplication application = start(rule)) {
            assertThat(RedisActuatorTests.<Map<String, Object>>health(application, 200, ".details"))
                    .containsEntry("backend", "Redis")
                    .containsEntry("condition", "UP")
                    .doesNotContainKeys("cause", "refusing");
            redis.kill();
            await().until(() -> {
                application.get("/actuator/health");
                return application.condition() == Condition.DOWN;
            });

            assertThat(RedisActuatorTests.<String>health(application, status, ".status"))
                    .isEqualTo(shown);
            Map<String, Object> details = health(application, status, ".details");
            assertThat(details).containsEntry("condition", "DOWN").containsKeys("since", "cause");
            assertThat(details.get("refusing")).isEqualTo(rule.equals("deny") ? List.of("strict") : null);

            redis.start();
            await().until(() -> {
                application.get("/actuator/health");
                return application.condition() == Condition.UP;
            });
            assertThat(RedisActuatorTests.<String>health(application, 200, ".status"))
                    .isEqualTo("UP");
        }
    }

    @ParameterizedTest
    @CsvSource({"local, 200, UP", "deny, 503, DOWN"})
    void aMisconfigurationShowsWhileItLasts(String rule, int status, String shown) {
        try (RedisApplication application = start(rule)) {
            redis.ask(commands -> commands.replicaof("127.0.0.1", redis.port()));

            for (int i = 0; i < 3; i++) {
                Map<String, Object> details = health(application, status, ".details");
                assertThat(details).containsEntry("condition", "MISCONFIGURED");
                assertThat((String) details.get("cause")).contains("READONLY");
            }
            assertThat(RedisActuatorTests.<String>health(application, status, ".status"))
                    .isEqualTo(shown);
        }
    }

    /** The key of another application, or a right that only this policy needs. */
    @Test
    void aKeyThatFailsTakesNoInstanceOutOfRotation() {
        try (RedisApplication application = start("deny")) {
            application.awaitUp();
            assertThat(application.status("/strict")).isEqualTo(200);
            redis.keys().stream()
                    .filter(key -> key.contains(":strict:"))
                    .forEach(key -> redis.ask(commands -> {
                        commands.del(key);
                        return commands.lpush(key, "none of ours");
                    }));
            assertThat(application.status("/strict")).isEqualTo(503);

            Map<String, Object> details = health(application, 200, ".details");
            assertThat(details).containsEntry("condition", "MISCONFIGURED").doesNotContainKey("refusing");
            assertThat((String) details.get("cause")).contains("WRONGTYPE");
            assertThat(RedisActuatorTests.<Map<String, Object>>ask(application, "/strict", "$"))
                    .doesNotContainKey("outage");
        }
    }

    /** An instance that a load balancer has removed gets no requests. */
    @Test
    void theEndOfAMisconfigurationShowsWithoutRequests() {
        try (RedisApplication application =
                RedisApplication.start(redis.port(), YAML.formatted("deny"), StandingTime.class)) {
            ManualTimeSource time = application.bean(ManualTimeSource.class);
            redis.ask(commands -> commands.replicaof("127.0.0.1", redis.port()));
            health(application, 503, ".status");
            redis.ask(RedisCommands::replicaofNoOne);

            await().until(() -> application.get("/actuator/health").statusCode() == 200);
            time.advance(Duration.ofSeconds(10).minusNanos(1));
            assertThat(RedisActuatorTests.<String>health(application, 200, ".details.condition"))
                    .isEqualTo("MISCONFIGURED");
            time.advance(Duration.ofNanos(1));
            assertThat(RedisActuatorTests.<String>health(application, 200, ".details.condition"))
                    .isEqualTo("UP");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class StandingTime {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }
    }

    @Test
    void withoutABackendThereIsNothingToTell() {
        String yaml = """
                management:
                  endpoints.web.exposure.include: health
                  endpoint.health: { show-details: always, show-components: always }
                ratelimit.policies.all.rate: 9/1d
                """;
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml)) {
            assertThat(RedisActuatorTests.<Map<String, Object>>health(application, 200, ""))
                    .isEqualTo(Map.of("status", "UP"));
        }
        try (RedisApplication application =
                RedisApplication.start(redis.port(), yaml + "management.health.ratelimit.enabled: false\n")) {
            assertThat(application.get("/actuator/health").body()).doesNotContain("\"ratelimit\"");
        }
    }
}
