package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend.Condition;
import io.ratelimit.Throttlers;
import java.net.http.HttpResponse;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Limits on a healthy Redis. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
@Tag("timed")
class RedisBackendTests {

    @AutoClose
    private static final RedisProcess redis = RedisProcess.started();

    @BeforeEach
    void empty() {
        redis.ask(commands -> {
            commands.configSet("maxmemory-policy", "noeviction");
            commands.configSet("maxmemory", "0");
            return commands.flushall();
        });
    }

    private static List<Integer> statuses(int count, RedisApplication... applications) {
        return IntStream.range(0, count)
                .map(i -> applications[i % applications.length].status("/a"))
                .boxed()
                .toList();
    }

    /** S4.3, S5.1, S5.2: one line, and all instances share every limit. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void twoInstancesShareALimit(String strategy) {
        String yaml = """
                ratelimit:
                  backend: redis
                  redis: { strategy: %s, timeout: 5s }
                  policies:
                    per-ip: { key: ip, rate: 5/1d }
                """.formatted(strategy);
        try (RedisApplication one = RedisApplication.start(redis.port(), yaml);
                RedisApplication other = RedisApplication.start(redis.port(), yaml)) {
            assertThat(statuses(8, one, other)).containsExactly(200, 200, 200, 200, 200, 429, 429, 429);
            HttpResponse<String> refusal = other.get("/a");
            assertThat(refusal.headers().firstValue("RateLimit"))
                    .hasValueSatisfying(value -> assertThat(value).startsWith("\"per-ip\";r=0;t="));
            assertThat(refusal.body()).contains("#quota-exceeded");
            assertThat(one.condition()).isEqualTo(Condition.UP);
            assertThat(redis.keys()).allMatch(key -> key.startsWith("ratelimit:shop:"));

            one.bean(Throttlers.class).reset("per-ip", "127.0.0.1");
            assertThat(one.status("/a")).isEqualTo(200);
        }
    }

    /** A rolling deployment: while both versions run, at most the larger limit is granted; afterwards the new one. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void instancesWithDifferentRatesShareALimit(String strategy) {
        String yaml = """
                ratelimit:
                  backend: redis
                  redis: { strategy: %s, timeout: 5s }
                  policies:
                    per-ip: { key: ip, rate: %s, capacity: %d }
                """;
        try (RedisApplication old = RedisApplication.start(redis.port(), yaml.formatted(strategy, "6/1d", 6));
                RedisApplication next = RedisApplication.start(redis.port(), yaml.formatted(strategy, "10/1d", 10))) {
            assertThat(statuses(4, old)).containsOnly(200);
            assertThat(statuses(2, next)).containsOnly(200);
            assertThat(statuses(20, old, next).stream().filter(status -> status == 200))
                    .hasSizeLessThanOrEqualTo(4);
            assertThat(statuses(2, next)).containsOnly(429);
        }
    }

    /** The change of a customer's limit holds from the next request on, in all instances, and keeps the tokens. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aRequestsOwnLimitHoldsInAllInstances(String strategy) {
        String yaml = """
                ratelimit:
                  backend: redis
                  redis: { strategy: %s, timeout: 5s }
                  policies:
                    per-ip: { key: ip, rate: 2/1d, limit: "bean:plans" }
                """.formatted(strategy);
        try (RedisApplication one = RedisApplication.start(redis.port(), yaml);
                RedisApplication other = RedisApplication.start(redis.port(), yaml)) {
            for (int i = 0; i < 2; i++) {
                assertThat(one.status("/a?plan=10/1d")).isEqualTo(200);
                assertThat(other.status("/a?plan=20/1d")).isEqualTo(200);
            }
            assertThat(one.get("/a?plan=5/1d").headers().firstValue("RateLimit"))
                    .hasValueSatisfying(value -> assertThat(value).startsWith("\"per-ip\";r=4;t="));
            assertThat(other.status("/a")).as("cut to the policy's two").isEqualTo(200);
            assertThat(one.status("/a?plan=1000/1d")).isEqualTo(200);
            assertThat(other.status("/a?plan=1000/1d")).isEqualTo(429);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aMonthlyQuotaComesBackOnTheFirstOfTheMonth(String strategy) {
        String yaml = """
                ratelimit:
                  backend: redis
                  redis: { strategy: %s, timeout: 5s }
                  policies:
                    quota: { key: ip, rate: 3/month, refill: calendar, zone: Asia/Tokyo }
                """.formatted(strategy);
        try (RedisApplication one = RedisApplication.start(redis.port(), yaml);
                RedisApplication other = RedisApplication.start(redis.port(), yaml)) {
            assertThat(statuses(5, one, other)).containsExactly(200, 200, 200, 429, 429);
            ZonedDateTime now = ZonedDateTime.now(ZoneId.of("Asia/Tokyo"));
            long seconds = ChronoUnit.SECONDS.between(
                    now, now.toLocalDate().withDayOfMonth(1).plusMonths(1).atStartOfDay(now.getZone()));
            assertThat(other.get("/a").headers().firstValueAsLong("Retry-After").orElseThrow())
                    .isBetween(seconds - 10, seconds + 2);
        }
    }

    @Test
    void aPolicyChoosesForItselfAndMemoryIsAskedFirst() {
        String yaml = """
                ratelimit:
                  redis.timeout: 5s
                  policies:
                    quota: { key: ip, rate: 5/1d, backend: redis }
                    node: { rate: 3/1d }
                """;
        try (RedisApplication one = RedisApplication.start(redis.port(), yaml);
                RedisApplication other = RedisApplication.start(redis.port(), yaml)) {
            assertThat(statuses(4, one)).containsExactly(200, 200, 200, 429);
            assertThat(statuses(4, other)).containsExactly(200, 200, 429, 429);
            assertThat(one.bean(Throttlers.class).snapshot("quota", "127.0.0.1").available())
                    .isZero();
            assertThat(other.bean(Throttlers.class).snapshot("node").available())
                    .as("given back where Redis denied")
                    .isEqualTo(1);
        }
    }

    @Test
    void aFloodOnADrainedKeyHardlyReachesRedis() {
        String yaml = """
                ratelimit:
                  backend: redis
                  redis.timeout: 5s
                  policies:
                    per-ip: { key: ip, rate: 1/1d }
                """;
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml)) {
            statuses(2, application);
            long before = redis.calls();
            long began = System.nanoTime();
            assertThat(statuses(1_000, application)).containsOnly(429);
            long seconds = (System.nanoTime() - began) / 1_000_000_000;
            assertThat(redis.calls() - before).isLessThanOrEqualTo(2 * seconds + 2);
        }
    }

    @Test
    void theStartReportNamesThePlaceOfTheBuckets(CapturedOutput output) {
        String yaml = """
                ratelimit:
                  backend: redis
                  on-backend-failure: deny
                  policies:
                    shared: { key: ip, rate: 5/1d }
                    shared-too: { rate: 5/1d, on-backend-failure: allow }
                    own: { rate: 5/1d, backend: local }
                """;
        RedisApplication.start(redis.port(), yaml).close();

        assertThat(output)
                .contains("3 enforced, 0 in shadow mode, 0 off; buckets on Redis (denies all while Redis is"
                        + " unavailable); client address from the connection")
                .contains("shared: 5/1d, capacity 5, a bucket for each ip; all requests; before authentication"
                        + System.lineSeparator())
                .contains("shared-too: 5/1d, capacity 5, one bucket; all requests; before authentication; on Redis"
                        + " (allows all while Redis is unavailable)")
                .contains("own: 5/1d, capacity 5, one bucket; all requests; before authentication; in memory")
                .doesNotContain("Redis is unavailable (", "Redis may", "has no name");
    }

    /** Lua can count two hours ahead at 1,000,003 ticks a microsecond. */
    @Test
    void aWaitThatIsTooLongToBeCountedAheadIsWarnedOf(CapturedOutput output) {
        RedisApplication.start(redis.port(), """
                        ratelimit:
                          policies:
                            bulk: { rate: 1000003/1s, max-wait: 5h, backend: redis }
                            round: { rate: 1000000/1s, max-wait: 5h, backend: redis }
                            short: { rate: 1000003/1s, max-wait: 1h, backend: redis }
                            own: { rate: 1000003/1s, max-wait: 5h }
                        """).close();

        assertThat(output)
                .containsOnlyOnce("beyond the time by which tokens can be taken ahead in Redis")
                .contains(
                        "Throttle policy 'bulk' has a 'max-wait' beyond the time by which tokens can be taken ahead in Redis,"
                                + " which is 133m: a call that would wait longer is denied. Set a shorter 'max-wait', or a rate of"
                                + " rounder numbers");
    }

    @Test
    void aMemoryPolicyThatEvictsIsWarnedOf(CapturedOutput output) {
        redis.ask(commands -> {
            commands.configSet("maxmemory", "1gb");
            return commands.configSet("maxmemory-policy", "volatile-lru");
        });
        String yaml = "ratelimit: { backend: redis, policies: { api: { rate: 5/1d } } }\nspring.application.name: ''";
        RedisApplication.start(redis.port(), yaml).close();

        assertThat(output)
                .contains("Redis may evict buckets when its memory is full (maxmemory-policy is 'volatile-lru')")
                .contains("The application has no name, so its keys in Redis begin with 'ratelimit'");
        assertThat(redis.keys()).allMatch(key -> key.startsWith("ratelimit:self-test:"));
    }
}
