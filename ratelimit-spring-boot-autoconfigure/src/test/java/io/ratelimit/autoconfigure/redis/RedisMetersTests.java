package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.Decision;
import io.ratelimit.Throttlers;
import java.util.List;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** The meters of limits on Redis, and shadow mode on Redis. */
class RedisMetersTests {

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    @Test
    void thePlaceOfAnAnswerIsCountedAndNoMeterCallsRedis() {
        String yaml = """
                ratelimit:
                  redis.timeout: 5s
                  policies:
                    shared: { rate: 3/1d, backend: redis }
                    per-ip: { key: ip, rate: 100/1d, backend: redis, paths: /nobody }
                    own: { key: ip, rate: 100/1d }
                """;
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml)) {
            Meters meters = new Meters(application.bean(MeterRegistry.class));
            assertThat(meters.gauge("ratelimit.available", "shared")).isNaN();
            assertThat(statuses(application, 4)).containsExactly(200, 200, 200, 429);
            assertThat(meters.decisions("shared", "allowed", "redis")).isEqualTo(3);
            assertThat(meters.decisions("shared", "denied", "redis")).isEqualTo(1);
            assertThat(meters.decisions("shared", "allowed", "local")).isZero();
            assertThat(meters.decisions("own", "allowed", "local")).isEqualTo(3);
            assertThat(meters.calls("ok")).isEqualTo(4);

            long calls = redis.calls();
            assertThat(meters.gauge("ratelimit.available", "shared"))
                    .as("as it was last seen")
                    .isZero();
            assertThat(meters.has("ratelimit.keys", "per-ip")).isFalse();
            assertThat(meters.gauge("ratelimit.keys", "own")).isEqualTo(1);
            assertThat(redis.calls()).isEqualTo(calls);

            redis.kill();
            Awaitility.await().until(() -> {
                application.status("/a");
                return meters.decisions("shared", "allowed", "local") > 0;
            });
            assertThat(meters.event("shared", "backend-failure")).isPositive();
            assertThat(meters.event("own", "backend-failure")).isZero();
            assertThat(meters.calls("failed")).isPositive();
            assertThat(meters.gauge("ratelimit.available", "shared"))
                    .as("not of what stands in")
                    .isZero();
        }
    }

    /** Such a denial asks no bucket. */
    @Test
    void aDenialForWantOfASlotIsNoLevelOfTheBucket() {
        String yaml = """
                management.endpoints.web.exposure.include: ratelimitdashboard
                ratelimit:
                  redis.timeout: 5s
                  policies:
                    renders: { rate: 600/1d, in-flight: 1, backend: redis, paths: /a }
                """;
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml)) {
            Throttlers throttlers = application.bean(Throttlers.class);
            Meters meters = new Meters(application.bean(MeterRegistry.class));
            Decision running =
                    throttlers.decide(List.of(throttlers.global("renders").charge(1)));
            assertThat(application.status("/a")).isEqualTo(429);
            running.release();

            assertThat(meters.decisions("renders", "denied", "redis")).isEqualTo(1);
            assertThat(meters.gauge("ratelimit.available", "renders")).isEqualTo(599);
            assertThat(application.get("/actuator/ratelimitdashboard/data").body())
                    .contains("\"available\":599");
        }
    }

    @Test
    void aShadowOnRedisRefusesNothingIsCountedAndGivesBack() {
        String yaml = """
                ratelimit:
                  redis.timeout: 5s
                  policies:
                    enforced: { key: ip, rate: 4/1d }
                    candidate: { key: ip, rate: 2/1d, backend: redis, mode: shadow }
                    returned: { key: ip, rate: 2/1d, backend: redis, mode: shadow, refund-on: 2xx }
                """;
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml)) {
            Throttlers throttlers = application.bean(Throttlers.class);
            for (int i = 0; i < 5; i++) {
                assertThat(application.status("/a")).isEqualTo(i < 4 ? 200 : 429);
                Awaitility.await() // after the response
                        .until(() ->
                                throttlers.snapshot("returned", "127.0.0.1").available() == 2);
            }

            Meters meters = new Meters(application.bean(MeterRegistry.class));
            assertThat(meters.decisions("enforced", "denied", "local")).isEqualTo(1);
            assertThat(meters.decisions("candidate", "allowed", "redis")).isEqualTo(2);
            assertThat(meters.decisions("candidate", "shadow-denied", "redis")).isEqualTo(2);
            assertThat(meters.decisions("candidate", "denied", "redis")).isZero();
            assertThat(meters.decisions("returned", "allowed", "redis")).isEqualTo(4);
        }
    }

    private static List<Integer> statuses(RedisApplication application, int count) {
        return IntStream.range(0, count)
                .map(i -> application.status("/a"))
                .boxed()
                .toList();
    }

    record Meters(MeterRegistry registry) {

        double decisions(String policy, String outcome, String backend) {
            return registry.get("ratelimit.decisions")
                    .tags("policy", policy, "outcome", outcome, "backend", backend)
                    .counter()
                    .count();
        }

        double event(String policy, String event) {
            return registry.get("ratelimit.events")
                    .tags("policy", policy, "event", event)
                    .counter()
                    .count();
        }

        long calls(String outcome) {
            return registry.get("ratelimit.backend")
                    .tags("backend", "redis", "outcome", outcome)
                    .timer()
                    .count();
        }

        boolean has(String name, String policy) {
            return registry.find(name).tag("policy", policy).meter() != null;
        }

        double gauge(String name, String policy) {
            return registry.get(name).tag("policy", policy).gauge().value();
        }
    }
}
