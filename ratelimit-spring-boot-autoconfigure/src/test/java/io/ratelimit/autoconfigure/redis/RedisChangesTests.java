package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.jayway.jsonpath.JsonPath;
import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.Backend.Condition;
import io.ratelimit.BucketSpec;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Throttlers;
import io.ratelimit.redis.RedisStorage;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Changes of limits for all instances: several applications on one Redis. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class RedisChangesTests {

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits, ratelimitdashboard
              endpoint.ratelimits.access: unrestricted
            ratelimit:
              backend: redis
              exclude-paths: /actuator/**
              redis: { strategy: %s, key-secret: s3cret, timeout: 5s }
              policies:
                shared: { rate: 3/1d, paths: /shared }
                here: { rate: 2/1d, backend: local, paths: /here }
                plans: { rate: 2/1d, tier: "query:plan", tiers: { pro: { rate: 4/1d } }, paths: /plans }
                priced: { rate: 50/1d, cost: 10, paths: /priced }
            """;
    private static final String INVALID = """
            shared | {"capacity": 7, "for": "all", "until": "2020-01-01T00:00:00Z"} | 400 | until must be after the time of Redis,
            shared | {"capacity": 7, "for": "all", "until": "-2h"} | 400 | until must be
            shared | {"capacity": 7, "for": "all", "until": "0s"} | 400 | until must be after the time of Redis,
            shared | {"capacity": 7, "for": "all", "until": "99999d"} | 400 | and at most ten years later
            shared | {"capacity": 7, "for": "all", "until": "+999999999-12-31T00:00:00Z"} | 400 | and at most ten years later
            shared | {"capacity": 7, "for": "all", "until": "2030-01-01T00:00:00"} | 400 | until must be a time with its offset, such as '2026-11-22T18:00:00Z', or a duration from now, such as '2h'
            shared | {"capacity": 7, "for": "all", "until": "30"} | 400 | until must be a time with its offset
            shared | {"capacity": 7, "for": "all", "until": ""} | 400 | until must be a time with its offset
            shared | {"capacity": 7, "until": "2h"} | 400 | 'until' needs "for": "all"
            shared | {"capacity": 7, "for": "everyone"} | 400 | 'for' must be 'all' or 'instance'
            shared | {"capacity": 7, "target": "all"} | 400 | unknown field in the body; allowed are: capacity, for, inFlight, rate, tier, until
            shared | {"for": "all"} | 400 | the body must contain a rate, a capacity or both
            priced | {"capacity": 9, "for": "all"} | 400 | capacity of 'priced' must be at least the cost of the policy, 10, but was 9
            plans | {"capacity": 9, "for": "all", "tier": "gold"} | 404 | 'plans' has no such tier
            nobody | {"capacity": 9, "for": "all"} | 404 | no policy has this name
            """;
    private static final String KEY = "ratelimit:shop:changes";
    private static final BucketSpec SHARED = BucketSpec.of("3/1d");

    @AutoClose
    private RedisProcess redis = RedisProcess.started();

    private RedisApplication start() {
        return start("script");
    }

    private RedisApplication start(String strategy) {
        return RedisApplication.start(redis.port(), YAML.formatted(strategy));
    }

    private static String change(RedisApplication application, String policy, String json) {
        AtomicReference<HttpResponse<String>> answer = new AtomicReference<>();
        await().pollDelay(Duration.ZERO)
                .until(
                        () -> { // a busy machine may need longer than the second that a change has
                            answer.set(application.post("/actuator/ratelimits/" + policy, json));
                            return answer.get().statusCode() != 503;
                        });
        assertThat(answer.get().statusCode()).as(answer.get().body()).isEqualTo(200);
        return answer.get().body();
    }

    private static HttpResponse<String> takeBack(RedisApplication application, String limit) {
        return application.request("DELETE", "/actuator/ratelimits/" + limit.replace("?", "/change?"));
    }

    private static void assertRejected(HttpResponse<String> answer, int status, String detail) {
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(status);
        assertThat(JsonPath.<String>read(answer.body(), "$.detail")).contains(detail);
    }

    private static Map<String, Object> limit(RedisApplication application, String policy) {
        return JsonPath.read(application.get("/actuator/ratelimits/" + policy).body(), "$.limit");
    }

    private static BucketSpec spec(RedisApplication application, String policy) {
        return application.bean(Throttlers.class).get(policy).policy().spec();
    }

    private static BucketSpec pro(RedisApplication application) {
        return application.bean(Throttlers.class).get("plans").policy().tiers().get("pro");
    }

    private static void awaitSpec(String policy, BucketSpec spec, RedisApplication... applications) {
        await().pollInterval(Duration.ofMillis(10)).untilAsserted(() -> {
            for (RedisApplication application : applications) {
                assertThat(spec(application, policy)).isEqualTo(spec);
            }
        });
    }

    private static long allowed(RedisApplication application, String path) {
        return IntStream.range(0, 20)
                .filter(i -> application.status(path) == 200)
                .count();
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aChangeForAllHoldsOnEachInstanceAndOnOneThatStartsLaterUntilItIsTakenBack(String strategy) {
        try (RedisApplication one = start(strategy);
                RedisApplication other = start(strategy)) {
            Map<String, Object> reply =
                    JsonPath.read(change(one, "shared", "{\"capacity\": 7, \"for\": \"all\"}"), "$");
            assertThat(reply)
                    .containsEntry("for", "all")
                    .doesNotContainKey("until")
                    .containsEntry("before", Map.of("rate", "3/1d", "capacity", 3, "refill", "greedy"));
            change(other, "here", "{\"rate\": \"5/1d\", \"for\": \"all\"}");
            change(other, "plans", "{\"capacity\": 6, \"tier\": \"pro\", \"for\": \"all\"}");
            awaitSpec("shared", SHARED.withCapacity(7), one, other);
            awaitSpec("here", BucketSpec.of("5/1d"), one, other);
            await().untilAsserted(() ->
                    assertThat(pro(one)).isEqualTo(BucketSpec.of("4/1d").withCapacity(6)));

            try (RedisApplication later = start(strategy)) {
                awaitSpec("shared", SHARED.withCapacity(7), later);
                assertThat(allowed(later, "/here")).isEqualTo(5);
                assertThat(allowed(one, "/here")).isEqualTo(5);
                assertThat(allowed(later, "/plans?plan=pro")).isEqualTo(6);
                assertThat(allowed(later, "/plans")).isEqualTo(2);
                for (RedisApplication application : new RedisApplication[] {one, other, later}) {
                    assertThat(limit(application, "shared")).containsEntry("capacity", 7);
                    assertThat(JsonPath.<Map<String, Object>>read(limit(application, "shared"), "$.changed"))
                            .containsEntry("for", "all")
                            .containsEntry("rate", "3/1d")
                            .containsEntry("capacity", 3)
                            .containsKey("since")
                            .doesNotContainKey("until");
                }

                String page = later.get("/actuator/ratelimitdashboard/data").body();
                assertThat(JsonPath.<List<String>>read(page, "$.policies[?(@.name == 'plans')]..changed.for"))
                        .hasSize(1)
                        .isEqualTo(JsonPath.read(page, "$.policies[?(@.name == 'plans')].tiers.pro.changed.for"));
                assertThat(JsonPath.<List<String>>read(page, "$.policies[*]..changed.for"))
                        .containsExactly("all", "all", "all");
                assertThat(JsonPath.<Boolean>read(page, "$.change.forAll")).isTrue();

                HttpResponse<String> back = takeBack(later, "shared?");
                assertThat(back.statusCode()).isEqualTo(200);
                assertThat(JsonPath.<Map<String, Object>>read(back.body(), "$"))
                        .containsEntry("for", "all")
                        .containsEntry("now", Map.of("rate", "3/1d", "capacity", 3, "refill", "greedy"));
                takeBack(later, "plans?tier=pro");
                awaitSpec("shared", SHARED, one, other, later);
                await().untilAsserted(() -> assertThat(pro(one)).isEqualTo(BucketSpec.of("4/1d")));
                assertThat(limit(one, "shared")).doesNotContainKey("changed");
                assertThat(spec(one, "here")).isEqualTo(BucketSpec.of("5/1d"));
                assertRejected(takeBack(later, "shared?"), 404, "the limit is that of the configuration");
            }
        }
    }

    @Test
    void aChangeEndsAtItsTimeOnAllInstancesAlsoWhileRedisIsAway() {
        try (RedisApplication one = start();
                RedisApplication other = start()) {
            String reply = change(one, "shared", "{\"capacity\": 7, \"for\": \"all\", \"until\": \"8s\"}");
            Instant until = Instant.parse(JsonPath.read(reply, "$.now.changed.until"));
            assertThat(JsonPath.<String>read(reply, "$.for")).isEqualTo("all");
            assertThat(JsonPath.<String>read(reply, "$.until")).isEqualTo(until.toString());
            awaitSpec("shared", SHARED.withCapacity(7), one, other);
            redis.kill();

            awaitSpec("shared", SHARED, one, other);

            assertThat(Instant.now()).isAfterOrEqualTo(until);
        }
    }

    @Test
    void aTimeWithAnOffsetIsAnEndAndAnEndedChangeIsNotFollowed() {
        try (RedisApplication one = start()) {
            OffsetDateTime until = OffsetDateTime.now(ZoneOffset.ofHours(5)).plusHours(1);
            String reply = change(one, "shared", "{\"capacity\": 7, \"for\": \"all\", \"until\": \"" + until + "\"}");
            assertThat(Instant.parse(JsonPath.read(reply, "$.now.changed.until")))
                    .isEqualTo(until.toInstant());
            put(one, "here", "rate=9/1d capacity=9 since=2026-11-01T00:00:00Z until=2026-11-02T00:00:00Z");

            try (RedisApplication later = start()) {
                awaitSpec("shared", SHARED.withCapacity(7), later);
                assertThat(spec(later, "here")).isEqualTo(BucketSpec.of("2/1d"));
            }
        }
    }

    @Test
    void anInvalidChangeForAllIsRejectedAndChangesNothing() {
        try (RedisApplication one = start()) {
            INVALID.lines().map(line -> line.split(" \\| ")).forEach(row -> {
                HttpResponse<String> answer = one.post("/actuator/ratelimits/" + row[0], row[1]);
                assertRejected(answer, Integer.parseInt(row[2]), row[3]);
            });
            assertThat(redis.<Long>ask(commands -> commands.exists(KEY))).isZero();
            assertThat(spec(one, "shared")).isEqualTo(SHARED);
        }
    }

    @Test
    void onlyTheChangeOfAPolicyCanBeTakenBack() {
        try (RedisApplication one = start()) {
            assertRejected(
                    one.request("DELETE", "/actuator/ratelimits/shared/demand"),
                    404,
                    "below a policy, only 'change' can be deleted");
            assertRejected(one.request("DELETE", "/actuator/ratelimits/nobody/change"), 404, "no policy has this name");
            assertRejected(takeBack(one, "plans?tier=gold"), 404, "'plans' has no such tier");
            assertRejected(takeBack(one, "shared?key=a"), 400, "unknown parameter; allowed are: tier");
        }
    }

    @Test
    void ofAChangeOfOneInstanceAndOneForAllTheLaterCounts() {
        try (RedisApplication one = start();
                RedisApplication other = start()) {
            change(one, "shared", "{\"capacity\": 7, \"for\": \"all\"}");
            change(other, "shared", "{\"capacity\": 5, \"for\": \"instance\"}");
            assertThat(JsonPath.<Map<String, Object>>read(limit(other, "shared"), "$.changed"))
                    .containsEntry("for", "instance");
            change(one, "here", "{\"capacity\": 9, \"for\": \"all\"}");
            awaitSpec("here", BucketSpec.of("2/1d").withCapacity(9), other);
            assertThat(spec(other, "shared"))
                    .as("the change for all was followed before")
                    .isEqualTo(SHARED.withCapacity(5));

            change(one, "shared", "{\"capacity\": 8, \"for\": \"all\"}");
            awaitSpec("shared", SHARED.withCapacity(8), one, other);
            change(other, "shared", "{\"capacity\": 5}");
            takeBack(one, "shared?");
            takeBack(one, "here?");
            awaitSpec("here", BucketSpec.of("2/1d"), one, other);
            assertThat(spec(one, "shared")).isEqualTo(SHARED);
            assertThat(spec(other, "shared")).isEqualTo(SHARED.withCapacity(5));
            assertThat(takeBack(other, "shared?").body()).contains("\"for\":\"instance\"");
            assertThat(spec(other, "shared")).isEqualTo(SHARED);
        }
    }

    @Test
    void withoutRedisAChangeForAllIsUnavailableAndTheOthersStay() {
        try (RedisApplication one = start();
                RedisApplication other = start()) {
            change(one, "shared", "{\"capacity\": 7, \"for\": \"all\"}");
            awaitSpec("shared", SHARED.withCapacity(7), one, other);
            redis.kill();

            assertRejected(
                    one.post("/actuator/ratelimits/shared", "{\"capacity\": 9, \"for\": \"all\"}"),
                    503,
                    "Redis is unavailable; no limit was changed");
            assertThat(takeBack(one, "shared?").statusCode()).isEqualTo(503);
            change(other, "here", "{\"capacity\": 5}");
            assertThat(spec(other, "here")).isEqualTo(BucketSpec.of("2/1d").withCapacity(5));
            await().until(() -> one.status("/shared") > 0 && one.condition() == Condition.DOWN);
            assertThat(spec(one, "shared")).isEqualTo(SHARED.withCapacity(7));
            assertThat(spec(other, "shared")).isEqualTo(SHARED.withCapacity(7));
        }
    }

    @Test
    void aFrozenRedisIsUnavailableToo() {
        try (RedisApplication one = start()) {
            redis.freeze();
            HttpResponse<String> answer =
                    one.post("/actuator/ratelimits/shared", "{\"capacity\": 9, \"for\": \"all\"}");
            redis.thaw();
            assertRejected(answer, 503, "Redis is unavailable; no limit was changed");
            assertThat(redis.<Long>ask(commands -> commands.exists(KEY))).isZero();
        }
    }

    @Test
    void aRestartWithPersistenceKeepsTheChanges(@TempDir Path directory) {
        redis.close();
        redis = RedisProcess.started("appendonly yes", "appendfsync always", "dir " + directory);
        for (String strategy : new String[] {"script", "transaction"}) {
            try (RedisApplication one = start(strategy)) {
                change(one, "shared", "{\"capacity\": 7, \"for\": \"all\"}");
                redis.kill();
                redis.start();
                change(one, "here", awaitConnection(one));
                assertThat(spec(one, "shared")).isEqualTo(SHARED.withCapacity(7));
                try (RedisApplication later = start(strategy)) {
                    awaitSpec("shared", SHARED.withCapacity(7), later);
                }
            }
        }
    }

    @Test
    void aRestartWithoutPersistenceEndsTheChangesOnAllInstances() {
        try (RedisApplication one = start();
                RedisApplication other = start("transaction")) {
            change(one, "shared", "{\"capacity\": 7, \"for\": \"all\"}");
            awaitSpec("shared", SHARED.withCapacity(7), one, other);
            redis.kill();
            redis.start();
            awaitSpec("shared", SHARED, one, other);
        }
    }

    /** Returns a change that succeeds as soon as the application is connected. */
    private static String awaitConnection(RedisApplication application) {
        String change = "{\"capacity\": 9, \"for\": \"all\"}";
        await().until(() ->
                application.post("/actuator/ratelimits/here", change).statusCode() == 200);
        return change;
    }

    @Test
    void aValueThatCannotBeUsedLeavesTheLimitAndIsLoggedOnce(CapturedOutput output) {
        try (RedisApplication one = start()) {
            change(one, "shared", "{\"capacity\": 7, \"for\": \"all\"}");
            redis.ask(commands -> commands.hset(KEY, "shared", "nonsense"));
            put(one, "priced", "rate=1/1d capacity=9 since=2026-11-01T00:00:00Z");
            put(one, "no\nsuch", "rate=1/1d capacity=9 since=2026-11-01T00:00:00Z");
            for (int capacity = 20; capacity < 22; capacity++) {
                followAnother(one, capacity);
            }
            assertThat(spec(one, "shared")).isEqualTo(SHARED.withCapacity(7));
            assertThat(spec(one, "priced")).isEqualTo(BucketSpec.of("50/1d"));
            assertThat(output)
                    .containsOnlyOnce("The change of 'shared' for all instances can't be used and is ignored, so the"
                            + " present limit stays: ")
                    .containsOnlyOnce("The change of 'priced' for all instances can't be used")
                    .doesNotContain("such' for all instances");

            assertThat(takeBack(one, "shared?").statusCode()).isEqualTo(200);
            assertThat(spec(one, "shared")).isEqualTo(SHARED);
            assertThat(redis.<Boolean>ask(commands -> commands.hexists(KEY, "shared")))
                    .isFalse();
        }
    }

    /** Has another change followed, which another process has made. */
    private void followAnother(RedisApplication application, int capacity) {
        put(application, "here", "rate=2/1d capacity=" + capacity + " since=2026-11-01T00:00:" + capacity + "Z");
        awaitSpec("here", BucketSpec.of("2/1d").withCapacity(capacity), application);
    }

    /** Writes a change to Redis as an instance does. */
    private static void put(RedisApplication application, String limit, String change) {
        ChangeBoard changes = application.bean(RedisStorage.class).changes();
        changes.put(limit, changes.sign(limit, change)).join();
    }

    @Test
    void aKeyOfAnotherTypeLeavesTheLimitsAndIsLoggedOnce(CapturedOutput output) {
        try (RedisApplication one = start()) {
            change(one, "shared", "{\"capacity\": 7, \"for\": \"all\"}");
            redis.ask(commands -> commands.set(KEY, "text"));
            await().until(() -> output.getOut().contains("Changes for all instances can't be read"));
            assertRejected(
                    one.post("/actuator/ratelimits/shared", "{\"capacity\": 9, \"for\": \"all\"}"),
                    503,
                    "WRONGTYPE Operation against a key holding the wrong kind of value; no limit was changed");
            assertThat(spec(one, "shared")).isEqualTo(SHARED.withCapacity(7));
            assertThat(one.condition()).isEqualTo(Condition.UP);
            assertThat(output).containsOnlyOnce("Changes for all instances can't be read, so the present limits stay:");

            redis.<Long>ask(commands -> commands.del(KEY));
            awaitSpec("shared", SHARED, one);
        }
    }

    @Test
    void aStoppedApplicationReadsNothingAndARestartedOneFollowsAgain() {
        try (RedisApplication one = start()) {
            String value = one.bean(RedisStorage.class)
                    .changes()
                    .sign("shared", "rate=3/1d capacity=7 since=2026-11-01T00:00:00Z");
            one.stop();
            redis.ask(RedisCommands::configResetstat);
            redis.ask(commands -> commands.hset(KEY, "shared", value));
            await().pollDelay(Duration.ofSeconds(2))
                    .untilAsserted(() -> assertThat(redis.<String>ask(commands -> commands.info("commandstats")))
                            .doesNotContain("hmget"));
            one.startAgain();
            awaitSpec("shared", SHARED.withCapacity(7), one);
        }
    }

    @Test
    void withoutLimitsOnRedisThereAreNoChangesForAll() {
        String yaml = YAML.formatted("script").replace("backend: redis", "backend: local");
        try (RedisApplication one = RedisApplication.start(redis.port(), yaml)) {
            assertRejected(
                    one.post("/actuator/ratelimits/shared", "{\"capacity\": 9, \"for\": \"all\"}"),
                    400,
                    "changes for all instances are kept in Redis or a database, and this instance follows none there: set"
                            + " 'ratelimit.backend', or the 'backend' of a policy, to redis or jdbc, and don't set"
                            + " 'changes: false' below 'ratelimit.redis' or 'ratelimit.jdbc'");
            change(one, "shared", "{\"capacity\": 9}");
            assertThat(takeBack(one, "shared?").body()).contains("\"for\":\"instance\"");
            assertThat(spec(one, "shared")).isEqualTo(SHARED);
        }
    }
}
