package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.AclSetuserArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.Backend.Condition;
import io.ratelimit.autoconfigure.redis.Clients.Answer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
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

/** Limits on a Redis that becomes unavailable and available again, over HTTP. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
@Tag("timed")
class RedisOutageTests {

    private static final int CLIENTS = 16;

    @AutoClose
    private final RedisProcess redis = RedisProcess.notStarted();

    private static String yaml(String rule) {
        return """
                ratelimit:
                  backend: redis
                  on-backend-failure: %s
                  redis.local-share: 0.5
                  policies:
                    early: { key: ip, rate: 1000000/1s }
                    late: { key: ip, rate: 20/1d, capacity: 40, phase: after-authentication }
                """.formatted(rule);
    }

    /** Waits longer for a reply than a busy machine needs. */
    private static String patient(String rule) {
        return "ratelimit.redis.timeout: 5s\n" + yaml(rule);
    }

    private static Clients clients(RedisApplication application) {
        return new Clients(CLIENTS, client -> application.status("/a"));
    }

    private void goes(boolean killed) {
        if (killed) {
            redis.kill();
        } else {
            redis.freeze();
        }
    }

    private void comesBack(boolean killed) {
        if (killed) {
            redis.start();
        } else {
            redis.thaw();
        }
    }

    private static void awaitCondition(RedisApplication application, Condition condition) {
        await().pollInterval(Duration.ofMillis(20)).until(() -> application.condition() == condition);
    }

    /** G3 and G4: each outage lasts until all clients have noticed it; the grants of all outages together are bounded. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aServerThatGoesAndComesUnderLoad(boolean killed) {
        redis.start();
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml("local"))) {
            warmUp(application);
            Clients clients = clients(application);
            try (clients) {
                for (int flap = 0; flap < 3; flap++) {
                    goes(killed);
                    awaitCondition(application, Condition.DOWN);
                    clients.awaitAnswers(500);
                    comesBack(killed);
                    awaitCondition(application, Condition.UP);
                }
            }
            assertThat(clients.answers()).extracting(Answer::status).containsOnly(200, 429);
            assertThat(clients.count(200))
                    .as("40 of Redis, 40 again where it was killed and forgot, and 20 of this node whatever happens")
                    .isLessThanOrEqualTo(killed ? 40 * 4 + 20 : 40 + 20);
            clients.assertInTime();
        }
    }

    /** 20 instances together would grant 20 of 1. */
    @Test
    void aShareOfLessThanATokenIsDeniedWith503AndTheStartWarns(CapturedOutput output) {
        try (RedisApplication application = RedisApplication.start(redis.port(), """
                ratelimit:
                  backend: redis
                  redis.local-share: 0.05
                  policies:
                    rare: { key: ip, rate: 1/1h, paths: /a }
                    network: { key: ip, rate: 20/1h, paths: /b, overrides: [{ keys: [10.0.0.0/8], rate: 3/1h }] }
                    strict: { rate: 1/1h, on-backend-failure: deny, paths: /c }
                    own: { rate: 1/1h, backend: local, paths: /c }
                    dear: { rate: 100/1h, cost: 6, paths: /d }
                """)) {
            assertThat(application.status("/a")).isEqualTo(503);
            assertThat(application.status("/b")).isNotIn(429, 503);
            assertThat(application.status("/b")).isEqualTo(429);
            assertThat(output)
                    .contains(
                            "Throttle policy 'rare' denies all calls of the limit 1/1h, capacity 1 while its backend is"
                                    + " unavailable, since the share of this instance is less than one token:"
                                    + " 'ratelimit.redis.local-share' is 0.05. Set it to 1 divided by the number of instances,"
                                    + " but at least 1 divided by the capacity; or accept this by"
                                    + " 'ratelimit.policies.rare.on-backend-failure: deny'")
                    .contains("Throttle policy 'network' denies all calls of the limit 3/1h, capacity 3 while its")
                    .contains("share of this instance is less than the cost, 6: 'ratelimit.redis.local-share' is 0.05")
                    .doesNotContain("'strict' denies")
                    .doesNotContain("'own' denies");
        }
    }

    /** At most a second passes on an idle machine. If the pause doubled, ten attempts would take four minutes. */
    @Test
    void thePauseBetweenAttemptsToConnectStaysTheSameDuringAnOutage() throws Exception {
        redis.start();
        try (TcpProxy proxy = new TcpProxy(redis.port());
                RedisApplication application = RedisApplication.start(proxy.port(), yaml("local"));
                Clients clients = clients(application)) {
            redis.kill();
            int connections = proxy.connections();
            await().until(() -> proxy.connections() >= connections + 10);
            assertThat(application.condition()).isEqualTo(Condition.DOWN);
            redis.start();
            awaitCondition(application, Condition.UP);
            clients.stop();
        }
    }

    private static void warmUp(RedisApplication application) {
        for (int i = 0; i < 3; i++) {
            application.status("/a");
        }
    }

    @Test
    void theStartAsksAHandfulOfTimesAndTheFirstRequestsFindRedisUp() {
        redis.start();
        try (RedisApplication application = RedisApplication.start(redis.port(), patient("local"))) {
            await().until(() -> redis.calls() >= 7);
            assertThat(redis.calls()).isLessThanOrEqualTo(10);

            Clients clients = clients(application);
            try (clients) {
                clients.awaitAnswers(200);
                assertThat(application.condition()).isEqualTo(Condition.UP);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"deny, 503, 500", "allow, 200, 503"})
    void theOtherRulesUnderLoad(String rule, int status, int never) {
        redis.start();
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml(rule))) {
            warmUp(application);
            Clients clients = clients(application);
            try (clients) {
                redis.freeze();
                awaitCondition(application, Condition.DOWN);
                clients.awaitAnswers(500);
                await().until(() -> application.status("/a") == status); // a denial is remembered for a moment
                assertThat(IntStream.range(0, 50).filter(i -> application.status("/a") == status))
                        .as("all but a probe that is late, of which the local share decides")
                        .hasSizeGreaterThan(45);
            }
            assertThat(clients.answers()).extracting(Answer::status).doesNotContain(500, never);
            clients.assertInTime();
            redis.thaw();
        }
    }

    @ParameterizedTest
    @CsvSource({"local, 200", "deny, 503", "allow, 200"})
    void theApplicationStartsWithoutRedisAndUsesItWhenItComes(String rule, int status, CapturedOutput output) {
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml(rule))) {
            assertThat(output).contains("WARN").contains("Redis is unavailable (");
            assertThat(application.condition()).isEqualTo(Condition.DOWN);
            assertThat(application.status("/a")).isEqualTo(status);
            assertThat(application.get("/a").headers().firstValue("Retry-After").isPresent())
                    .isEqualTo(status == 503);

            redis.start();
            await().until(() -> {
                application.status("/a");
                return application.condition() == Condition.UP;
            });
            assertThat(output).contains("Redis is available again");
        }
    }

    /** Redis was down at the start, or another server has taken over. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aMemoryPolicyThatEvictsIsWarnedOfOnceAfterARecovery(boolean downAtStart, CapturedOutput output) {
        if (!downAtStart) {
            redis.start();
        }
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml("local"))) {
            if (!downAtStart) {
                application.awaitUp();
                redis.kill();
                await().until(() -> {
                    application.status("/a");
                    return application.condition() == Condition.DOWN;
                });
            }
            assertThat(output).doesNotContain("Redis may evict");
            redis.start();
            redis.ask(commands -> {
                commands.configSet("maxmemory", "1gb");
                return commands.configSet("maxmemory-policy", "allkeys-lru");
            });
            await().until(() -> {
                application.status("/a");
                return output.getOut().contains("Redis may evict");
            });
        }
        assertThat(output)
                .containsOnlyOnce(
                        "Redis may evict buckets when its memory is full (maxmemory-policy is 'allkeys-lru')");
    }

    /** A misconfiguration is logged at the start, and its correction needs no restart. */
    @ParameterizedTest
    @CsvSource({"local, 200", "deny, 503", "allow, 200"})
    void anUnusableRedisAtTheStartIsNamedAndUsedWhenItIsMended(String rule, int status, CapturedOutput output) {
        redis.start();
        redis.ask(commands -> commands.replicaof("127.0.0.1", redis.port()));
        try (RedisApplication application = RedisApplication.start(redis.port(), patient(rule))) {
            assertThat(output)
                    .contains("ERROR")
                    .contains("Redis is misconfigured (")
                    .contains("READONLY");
            assertThat(application.condition()).isEqualTo(Condition.MISCONFIGURED);
            assertThat(application.status("/a")).isEqualTo(status);

            redis.ask(commands -> commands.replicaofNoOne());
            await().until(() -> {
                application.status("/a");
                return redis.keys().stream().anyMatch(key -> key.contains(":late:"));
            });
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"READONLY", "OOM", "NOPERM", "WRONGTYPE"})
    void aMisconfigurationIsNamedAndThePolicysRuleHolds(String cause, CapturedOutput output) {
        redis.start();
        try (RedisApplication application = RedisApplication.start(redis.port(), patient("deny"))) {
            assertThat(application.status("/a")).isEqualTo(200);
            misconfigure(cause);

            assertThat(application.status("/a")).isEqualTo(503);
            assertThat(application.status("/a")).isEqualTo(503);
            assertThat(application.condition()).isEqualTo(Condition.MISCONFIGURED);
            assertThat(output.getOut().lines().filter(line -> line.contains("ERROR")))
                    .singleElement()
                    .asString()
                    .contains("Redis is misconfigured (")
                    .contains(cause)
                    .doesNotContain("127.0.0.1");
        }
    }

    private void misconfigure(String cause) {
        redis.ask(commands -> switch (cause) {
            case "READONLY" -> commands.replicaof("127.0.0.1", redis.port());
            case "OOM" -> commands.configSet("maxmemory", "1");
            case "NOPERM" -> commands.aclSetuser("default", AclSetuserArgs.Builder.removeCommand(CommandType.EVALSHA));
            default -> {
                commands.keys("ratelimit:shop:*").forEach(key -> {
                    commands.del(key);
                    commands.lpush(key, "none of ours");
                });
                yield "";
            }
        });
    }

    @Test
    void aSlowRedisCostsARequestOneDeadlineOverBothPhases() throws Exception {
        redis.start();
        try (TcpProxy proxy = new TcpProxy(redis.port());
                RedisApplication application =
                        RedisApplication.start(proxy.port(), "ratelimit.redis.timeout: 1s\n" + yaml("local"))) {
            warmUp(application);
            proxy.delay(Duration.ofMillis(900));
            List<Long> took = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                long began = System.nanoTime();
                assertThat(application.status("/a")).isIn(200, 429);
                took.add((System.nanoTime() - began) / 1_000_000);
            }
            took.sort(null);
            assertThat(took.get(1)).as("%s", took).isBetween(900L, 1_500L);
        }
    }

    @Test
    void answersInPiecesAreAnswersAndACutConnectionIsMadeAgain() throws Exception {
        redis.start();
        try (TcpProxy proxy = new TcpProxy(redis.port());
                RedisApplication application = RedisApplication.start(proxy.port(), patient("deny"))) {
            proxy.slice();
            assertThat(application.status("/a")).isEqualTo(200);
            proxy.cut();
            await().until(() -> application.status("/a") == 200);
            assertThat(application.condition()).isEqualTo(Condition.UP);
        }
    }
}
