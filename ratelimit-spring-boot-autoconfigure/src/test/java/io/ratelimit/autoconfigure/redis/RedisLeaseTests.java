package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.Backend.Condition;
import java.util.concurrent.atomic.AtomicLong;
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

/** Leases over HTTP, from an application.yml. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class RedisLeaseTests {

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits,ratelimitdashboard
              endpoint.ratelimits.access: unrestricted
            ratelimit:
              backend: redis
              redis.timeout: 5s
              exclude-paths: /actuator/**
              policies:
                hot: { rate: 400/1d, lease: 1m }
                costly: { rate: 100/1m, lease: 10s, paths: /nobody }
                tiered:
                  rate: 100/1d
                  lease: 1m
                  paths: /nobody
                  key: user
                  tier: role
                  tiers: { fast: { rate: 100/10m } }
            """;

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    private static long allowed(RedisApplication application, int requests) {
        return IntStream.range(0, requests)
                .filter(i -> application.status("/a") == 200)
                .count();
    }

    @Test
    void instancesShareALimitWithFewCallsOfRedisAndNeverGrantMore(CapturedOutput output) {
        try (RedisApplication one = RedisApplication.start(redis.port(), YAML);
                RedisApplication other = RedisApplication.start(redis.port(), YAML)) {
            RedisMetersTests.Meters meters = new RedisMetersTests.Meters(one.bean(MeterRegistry.class));
            assertThat(output)
                    .contains("on Redis, leased for 1m (in memory while Redis is unavailable)")
                    .contains(
                            "Throttle policy 'costly' has a 'lease' of 10s: while leases are out, the tokens that come"
                                    + " back within that time are missing from bursts, which is more than 5 % of the capacity."
                                    + " Set a lease of at most 3s, or a larger capacity")
                    .contains("Throttle policy 'tiered' has a 'lease' of 1m: ")
                    .contains(" Set a lease of at most 30s, or a larger capacity")
                    .doesNotContain("'hot' has a 'lease'");
            assertThat(meters.gauge("ratelimit.leased", "hot")).isZero();
            long calls = redis.calls();

            assertThat(allowed(one, 60)).isEqualTo(60);
            assertThat(redis.calls() - calls).isLessThan(20);
            assertThat(meters.gauge("ratelimit.leased", "hot")).isPositive();
            assertThat(one.get("/actuator/ratelimits/hot").body()).contains("\"lease\":\"1m\"");
            assertThat(one.get("/actuator/ratelimitdashboard/data").body())
                    .containsPattern("\"name\":\"hot\".*?\"leased\":[1-9]");
            assertThat(meters.decisions("hot", "allowed", "redis")).isEqualTo(60);

            long taken = 60 + allowed(other, 400) + allowed(one, 400);
            assertThat(taken).isBetween(300L, 401L);
            assertThat(meters.decisions("hot", "allowed", "redis") + meters.decisions("hot", "denied", "redis"))
                    .isEqualTo(460);

            assertThat(other.request("DELETE", "/actuator/ratelimits/hot").body())
                    .as("each other instance may use the tokens that it has leased")
                    .contains("\"for\":\"all\",\"lease\":\"1m\"");
            assertThat(other.status("/a")).isEqualTo(200);
        }
    }

    /** An instance of the version before, without 'lease' or with another limit, beside one with a lease. */
    @ParameterizedTest
    @CsvSource({"400/1d, 340", "200/1d, 200"})
    void anInstanceWithoutLeasesSharesTheLimit(String otherRate, long mostOfOther) {
        try (RedisApplication one = RedisApplication.start(redis.port(), YAML);
                RedisApplication other = RedisApplication.start(
                        redis.port(), YAML.replace("rate: 400/1d, lease: 1m", "rate: " + otherRate))) {
            assertThat(allowed(one, 60)).isEqualTo(60);
            long leased = leased(one);
            assertThat(leased).isPositive();
            long ofOther = allowed(other, 400);
            assertThat(ofOther).isBetween(150L, Math.min(340 - leased, mostOfOther));
            assertThat(60 + ofOther + allowed(one, 400)).isBetween(60 + ofOther + leased, 400L);
        }
    }

    /** Redis hangs, or is killed and starts without its data. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void leasesAreUsedUpWhileRedisIsUnavailableAndThenTheRuleDecides(boolean killed) {
        String yaml = YAML.replace("redis.timeout: 5s", "redis.timeout: 2s\n  on-backend-failure: deny");
        try (RedisApplication one = RedisApplication.start(redis.port(), yaml)) {
            assertThat(allowed(one, 60)).isEqualTo(60);
            long leased = leased(one);
            assertThat(leased).isPositive();
            if (killed) {
                redis.kill();
            } else {
                redis.freeze();
            }
            long meanwhile = 0;
            int status = one.status("/a");
            for (; status == 200; status = one.status("/a")) {
                meanwhile++;
            }
            assertThat(status).isEqualTo(503);
            assertThat(meanwhile).isBetween(leased, 200L);
            assertThat(leased(one)).isZero();

            if (killed) {
                redis.start();
            } else {
                redis.thaw();
            }
            AtomicLong afterwards = new AtomicLong();
            await().until(() -> {
                afterwards.addAndGet(allowed(one, 1));
                return one.condition() == Condition.UP;
            });
            afterwards.addAndGet(allowed(one, 500));
            if (killed) {
                assertThat(afterwards.get()).isBetween(250L, 400L);
            } else {
                assertThat(60 + meanwhile + afterwards.get()).isBetween(150L, 400L);
            }
        }
    }

    private static long leased(RedisApplication application) {
        return (long)
                new RedisMetersTests.Meters(application.bean(MeterRegistry.class)).gauge("ratelimit.leased", "hot");
    }
}
