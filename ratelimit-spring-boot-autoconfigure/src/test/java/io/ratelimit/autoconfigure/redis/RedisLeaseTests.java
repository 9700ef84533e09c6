package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Leases over HTTP, from an application.yml. */
@ExtendWith(OutputCaptureExtension.class)
class RedisLeaseTests {

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits
              endpoint.ratelimits.access: unrestricted
            ratelimit:
              backend: redis
              redis.timeout: 5s
              exclude-paths: /actuator/**
              policies:
                hot: { rate: 400/1d, lease: 1m }
                costly: { rate: 100/1m, lease: 10s, paths: /nobody }
            """;

    private final RedisProcess redis = RedisProcess.started();

    @AfterEach
    void stop() {
        redis.close();
    }

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
                    .contains(
                            "'hot' is enforced: 400/1d, capacity 400, one bucket, on Redis, leased for 1m (in memory while Redis")
                    .contains(
                            "Throttle policy 'costly' has a 'lease' of 10s: while leases are out, the tokens that come"
                                    + " back within that time are missing from bursts, which is more than 5 % of the capacity."
                                    + " Set a lease of at most 3s, or a larger capacity")
                    .doesNotContain("'hot' has a 'lease'");
            assertThat(meters.gauge("ratelimit.leased", "hot")).isZero();
            long calls = redis.calls();

            assertThat(allowed(one, 60)).isEqualTo(60);
            assertThat(redis.calls() - calls).isLessThan(20);
            assertThat(meters.gauge("ratelimit.leased", "hot")).isPositive();
            assertThat(meters.decisions("hot", "allowed", "redis")).isEqualTo(60);

            long taken = 60 + allowed(other, 400) + allowed(one, 400);
            assertThat(taken).isBetween(300L, 401L);
            assertThat(meters.decisions("hot", "allowed", "redis") + meters.decisions("hot", "denied", "redis"))
                    .isEqualTo(460);

            assertThat(other.request("DELETE", "/actuator/ratelimits/hot").body())
                    .contains("for all instances; each other instance may use the tokens that it has leased, for 1m at"
                            + " most");
            assertThat(other.status("/a")).isEqualTo(200);
        }
    }
}
