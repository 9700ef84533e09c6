package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.BucketSpec;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Throttlers;
import io.ratelimit.redis.RedisStorage;
import java.net.http.HttpResponse;
import java.time.Instant;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** A client that can write to Redis, and isn't an instance of the application, changes limits with HSET. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class ForeignChangesTests {

    private static final String KEY = "ratelimit:shop:changes";
    private static final String HUGE = "rate=1000000/1s capacity=1000000 since=2026-11-22T14:00:00Z";
    private static final BucketSpec CONFIGURED = BucketSpec.of("3/1d");
    private static final String EXPOSED = """
            management:
              endpoints.web.exposure.include: ratelimits, ratelimitdashboard
              endpoint.ratelimits.access: unrestricted
            """;
    private static final String YAML = """
            ratelimit:
              backend: redis
              exclude-paths: /actuator/**
              redis: { timeout: 10s, %s }
              policies:
                login: { key: ip, rate: 3/1d, backend: local, paths: /login, phase: before-authentication }
                shared: { rate: 3/1d, paths: /shared }
                marker: { rate: 3/1d, paths: /marker }
            """;
    private static final String SECRET = "key-secret: only-the-shop-has-it";

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    private RedisApplication exposed(String properties) {
        return RedisApplication.start(redis.port(), EXPOSED + YAML.formatted(properties));
    }

    private void hset(String limit, String value) {
        redis.ask(commands -> commands.hset(KEY, limit, value));
    }

    private static BucketSpec spec(RedisApplication application, String policy) {
        return application.bean(Throttlers.class).get(policy).policy().spec();
    }

    private static long allowed(RedisApplication application, String path) {
        return IntStream.range(0, 8)
                .filter(i -> application.status(path) == 200)
                .count();
    }

    /** Waits until the application has read the hash: it follows a change of the marker by an instance. */
    private static void awaitReading(RedisApplication application) {
        ChangeBoard changes = application.bean(RedisStorage.class).changes();
        String change = "rate=3/1d capacity=9 since=" + Instant.now();
        changes.put("marker", changes.sign("marker", change)).join();
        await().until(() -> spec(application, "marker").capacity() == 9);
    }

    @Test
    void withASecretAChangeWithoutItsHmacIsIgnoredWithOneWarning(CapturedOutput output) {
        hset("login", HUGE);
        hset("shared", HUGE + " hmac=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
        try (RedisApplication application = exposed(SECRET)) {
            awaitReading(application);

            assertThat(allowed(application, "/login")).isEqualTo(3);
            assertThat(allowed(application, "/shared")).isEqualTo(3);
            assertThat(application.get("/actuator/ratelimits/login").body()).doesNotContain("changed");
            assertThat(application.get("/actuator/ratelimitdashboard/data").body())
                    .doesNotContain("1000000/1s");
            assertThat(output)
                    .containsOnlyOnce("The change of 'login' for all instances can't be used and is ignored, so the"
                            + " present limit stays: it has no HMAC, so no instance with this"
                            + " 'ratelimit.redis.key-secret' has written it for this limit: remove it from Redis, find"
                            + " out who can write there, and send changes to the actuator")
                    .containsOnlyOnce("The change of 'shared' for all instances can't be used")
                    .contains("it has a wrong HMAC")
                    .doesNotContain("only-the-shop-has-it");
        }
    }

    @Test
    void aChangeByTheActuatorOfAnInstanceWithTheSecretHoldsForPoliciesInMemoryToo() {
        try (RedisApplication one = exposed(SECRET);
                RedisApplication other = exposed(SECRET)) {
            HttpResponse<String> answer = one.post("/actuator/ratelimits/login", "{\"capacity\": 5, \"for\": \"all\"}");
            assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
            await().until(() -> spec(other, "login").equals(CONFIGURED.withCapacity(5)));
            assertThat(redis.<String>ask(commands -> commands.hget(KEY, "login")))
                    .matches("rate=3/1d capacity=5 since=\\S+ hmac=[\\w-]{43}");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"key-secret: another", "key-prefix: blog, key-secret: only-the-shop-has-it"})
    void aSignedChangeCantBeMovedToAnotherApplicationOrLimit(String properties) {
        String text = "rate=3/1d capacity=7 since=" + Instant.now();
        String moved;
        try (RedisApplication foreign = exposed(properties)) {
            moved = foreign.bean(RedisStorage.class).changes().sign("shared", text);
        }
        try (RedisApplication application = exposed(SECRET)) {
            ChangeBoard changes = application.bean(RedisStorage.class).changes();
            hset("shared", moved);
            hset("login", changes.sign("shared", text));
            awaitReading(application);
            assertThat(spec(application, "shared")).isEqualTo(CONFIGURED);
            assertThat(spec(application, "login")).isEqualTo(CONFIGURED);

            hset("shared", changes.sign("shared", text).replace("capacity=7", "capacity=8"));
            hset("login", changes.sign("login", text));
            await().until(() -> spec(application, "login").capacity() == 7);
            assertThat(spec(application, "shared")).isEqualTo(CONFIGURED);
        }
    }

    @Test
    void withoutASecretOnlyPoliciesOnRedisCanBeChanged(CapturedOutput output) {
        hset("login", HUGE);
        hset("shared", "rate=3/1d capacity=7 since=2026-11-22T14:00:00Z");
        try (RedisApplication application = exposed("local-share: 1.0")) {
            await().until(() -> spec(application, "shared").equals(CONFIGURED.withCapacity(7)));
            assertThat(allowed(application, "/login")).isEqualTo(3);
            assertThat(output)
                    .containsOnlyOnce("The change of 'login' for all instances can't be used and is ignored, so the"
                            + " present limit stays: 'login' has its buckets in memory, and without"
                            + " 'ratelimit.redis.key-secret'");
            HttpResponse<String> answer =
                    application.post("/actuator/ratelimits/login", "{\"capacity\": 5, \"for\": \"all\"}");
            assertThat(answer.statusCode()).isEqualTo(400);
            assertThat(answer.body()).contains("set a key-secret");
        }
    }

    @ParameterizedTest
    @CsvSource({"false, '', 3", "false, 'changes: true', 7", "true, '', 7", "true, 'changes: false', 3"})
    void changesAreFollowedWhereTheEndpointIsExposedOrThePropertyStatesIt(
            boolean exposed, String properties, long capacity) {
        hset("shared", "rate=3/1d capacity=7 since=2026-11-22T14:00:00Z");
        String yaml = YAML.formatted(properties.isEmpty() ? "strategy: script" : properties);
        try (RedisApplication application = RedisApplication.start(redis.port(), exposed ? EXPOSED + yaml : yaml)) {
            assertThat(spec(application, "shared").capacity()).isEqualTo(capacity);
            assertThat(redis.<String>ask(commands -> commands.info("commandstats"))
                            .contains("cmdstat_hmget"))
                    .isEqualTo(capacity == 7);
        }
    }

    @Test
    void fieldsThatAreNoLimitsAreNotRead() {
        Map<String, String> foreign = IntStream.range(0, 100_000)
                .mapToObj(i -> "field" + i)
                .collect(Collectors.toMap(field -> field, field -> HUGE));
        redis.ask(commands -> commands.hset(KEY, foreign));
        try (RedisApplication application = exposed(SECRET)) {
            awaitReading(application);
            assertThat(redis.<String>ask(commands -> commands.info("stats"))
                            .lines()
                            .filter(line -> line.startsWith("total_net_output_bytes:"))
                            .mapToLong(line -> Long.parseLong(line.substring(line.indexOf(':') + 1)))
                            .sum())
                    .isBetween(1L, 500_000L);
        }
    }

    /** Redis has answered before, so its connection is open and each call waits for a reply. */
    @Tag("timed")
    @Test
    void aChangeOrAResetWhileRedisIsFrozenIsAnsweredWithinASecond() {
        try (RedisApplication application = exposed(SECRET)) {
            application.post("/actuator/ratelimits/marker", "{\"capacity\": 5, \"for\": \"all\"}");
            application.request("DELETE", "/actuator/ratelimits/marker");
            redis.freeze();
            String all = "{\"capacity\": 6, \"for\": \"all\"}";
            assertAnswered(503, () -> application.post("/actuator/ratelimits/shared", all));
            assertAnswered(503, () -> application.post("/actuator/ratelimits/login", all));
            assertAnswered(503, () -> application.request("DELETE", "/actuator/ratelimits/marker/change"));
            assertAnswered(503, () -> application.request("DELETE", "/actuator/ratelimits/shared"));
            assertAnswered(200, () -> application.post("/actuator/ratelimits/shared", "{\"capacity\": 6}"));
            assertAnswered(200, () -> application.post("/actuator/ratelimits/login", "{\"capacity\": 6}"));
            assertAnswered(200, () -> application.request("DELETE", "/actuator/ratelimits/login?key=127.0.0.1"));
        }
    }

    private static void assertAnswered(int status, Supplier<HttpResponse<String>> request) {
        HttpResponse<String> answer = OperatorTimes.answerWithinASecond(request);
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(status);
        if (status == 503) {
            assertThat(answer.body()).contains("Redis is unavailable");
        }
    }
}
