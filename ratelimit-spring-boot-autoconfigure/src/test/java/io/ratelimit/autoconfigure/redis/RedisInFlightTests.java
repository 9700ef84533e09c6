package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.Backend.Condition;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Requests in flight of two applications on one Redis, over HTTP, from an application.yml. */
@Tag("slow")
@Tag("timed")
@Timeout(120)
class RedisInFlightTests {

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits,health
              endpoint.ratelimits.access: unrestricted
              endpoint.health.show-components: always
            ratelimit:
              backend: redis
              redis: { timeout: 5s, local-share: 0.5 }
              exclude-paths: /actuator/**
              policies:
                pool: { in-flight: 3, paths: /hold/pool }
                wide: { in-flight: 16, paths: /hold/wide }
                both: { rate: 4/1d, in-flight: 2, paths: /hold/both }
                patient: { in-flight: 1, max-wait: 20s, paths: /hold/patient }
                strict: { in-flight: 2, paths: /hold/strict, on-backend-failure: deny }
                watched: { in-flight: 1, mode: shadow, paths: /hold/** }
            """;

    private static final Semaphore begun = new Semaphore(0);
    private static volatile CountDownLatch finish = new CountDownLatch(1);

    private final RedisProcess redis = RedisProcess.started();
    private final RedisApplication one = RedisApplication.start(redis.port(), YAML, Holding.class);
    private final RedisApplication other = RedisApplication.start(redis.port(), YAML, Holding.class);
    private final List<CompletableFuture<HttpResponse<String>>> requests = new ArrayList<>();

    @RestController
    static class Holding {

        @GetMapping({"/hold/pool", "/hold/wide", "/hold/both", "/hold/patient", "/hold/strict"})
        String hold() throws InterruptedException {
            CountDownLatch until = finish;
            begun.release();
            until.await();
            return "done";
        }

        @RateLimited(inFlight = "1")
        @GetMapping("/annotated")
        String annotated() throws InterruptedException {
            return hold();
        }
    }

    private void request(RedisApplication application, String path) {
        requests.add(CompletableFuture.supplyAsync(() -> application.get(path), work -> new Thread(work).start()));
    }

    private void hold(RedisApplication application, String path) throws InterruptedException {
        request(application, path);
        begun.acquire();
    }

    private void finish() {
        CountDownLatch before = finish;
        finish = new CountDownLatch(1);
        before.countDown();
        assertThat(requests).allMatch(request -> request.join().statusCode() == 200);
        requests.clear();
        begun.drainPermits();
    }

    @AfterEach
    void stop() {
        finish.countDown();
        for (RedisApplication application : List.of(one, other)) {
            Throttlers throttlers = application.bean(Throttlers.class);
            await().pollDelay(Duration.ZERO).until(() -> throttlers.all().stream()
                    .allMatch(
                            throttler -> throttlers.inFlight(throttler.policy().name()) == 0));
        }
        begun.drainPermits();
        finish = new CountDownLatch(1);
        one.close();
        other.close();
        redis.close();
    }

    @Test
    void theApplicationsTogetherRunAsManyRequestsAsThereAreSlots() throws Exception {
        hold(one, "/hold/pool");
        hold(other, "/hold/pool");
        hold(one, "/hold/pool");

        HttpResponse<String> rejected = other.get("/hold/pool");
        assertThat(rejected.statusCode()).isEqualTo(429);
        assertThat(rejected.headers().firstValue("RateLimit-Policy"))
                .hasValue("\"pool\";q=3;qu=\"concurrent-requests\"");
        assertThat(one.status("/hold/pool")).isEqualTo(429);
        String limit = one.get("/actuator/ratelimits/pool").body();
        assertThat(JsonPath.<Integer>read(limit, "$.inFlight")).as(limit).isEqualTo(2);
        assertThat(one.bean(Throttlers.class).inFlight("watched")).isEqualTo(1);

        finish();
        for (int i = 0; i < 3; i++) {
            awaitHeld(other, "/hold/pool");
        }
    }

    private void awaitHeld(RedisApplication application, String path) {
        await().until(() -> {
            request(application, path);
            CompletableFuture<?> last = requests.get(requests.size() - 1);
            await().until(() -> last.isDone() || begun.tryAcquire());
            if (last.isDone()) {
                requests.remove(last);
            }
            return !last.isDone();
        });
    }

    @Test
    void aRequestTakesASlotAndATokenOrNeither() throws Exception {
        hold(one, "/hold/both");
        hold(other, "/hold/both");
        assertThat(one.status("/hold/both")).isEqualTo(429);
        assertThat(other.status("/hold/both")).isEqualTo(429);
        finish();

        awaitHeld(one, "/hold/both");
        awaitHeld(other, "/hold/both");
        finish();
        HttpResponse<String> rejected = one.get("/hold/both");
        assertThat(rejected.headers().firstValue("RateLimit-Policy")).hasValue("\"both\";q=4;w=86400");
    }

    @Test
    void aWaitingRequestGetsTheSlotOfTheOtherApplication() throws Exception {
        hold(one, "/hold/patient");
        request(other, "/hold/patient");
        await().until(() -> other.bean(Throttlers.class).waiting("patient") == 1);
        CountDownLatch first = finish;
        finish = new CountDownLatch(1);
        first.countDown();
        begun.acquire();
        finish();
    }

    @Test
    void annotatedMethodsShareSlots() throws Exception {
        hold(one, "/annotated");
        assertThat(other.status("/annotated")).isEqualTo(429);
        finish();
        awaitHeld(other, "/annotated");
    }

    @Test
    void aChangeOfOneInstanceAppliesThere() throws Exception {
        assertThat(one.post("/actuator/ratelimits/pool", "{\"inFlight\": 1}").statusCode())
                .isEqualTo(200);
        hold(one, "/hold/pool");
        assertThat(one.status("/hold/pool")).isEqualTo(429);
        hold(other, "/hold/pool");
        hold(other, "/hold/pool");
        assertThat(other.status("/hold/pool")).isEqualTo(429);
    }

    @Test
    void withoutRedisEachApplicationHasItsShareAndRegistersWhatRunsOnReturn() throws Exception {
        redis.close();
        hold(one, "/hold/pool");
        hold(one, "/hold/pool");
        hold(other, "/hold/pool");
        hold(other, "/hold/pool");
        assertThat(one.status("/hold/pool")).isEqualTo(429);
        assertThat(one.status("/hold/strict")).isEqualTo(503);
        await().until(() -> one.get("/actuator/health").body().contains("\"ratelimit\":{\"status\":\"DOWN\""));

        redis.start();
        await().until(() -> registers("pool") == 2); // until then a request of the other application could get a slot
        for (RedisApplication application : List.of(one, other)) {
            await().until(() -> application.condition() == Condition.UP && application.status("/hold/pool") == 429);
        }
        finish();
        for (int i = 0; i < 3; i++) {
            awaitHeld(i == 0 ? one : other, "/hold/pool");
        }
    }

    /** Returns how many applications have registered slots of a policy's only key. */
    private long registers(String policy) {
        return slots(policy).count();
    }

    /** Returns the slots of each application: the third word of "process number slots usable deadline;". */
    private IntStream slots(String policy) {
        String registers = RedisProcess.ask(redis.port(), redis -> redis.keys("*:" + policy + "@slots:*").stream()
                .map(redis::get)
                .collect(Collectors.joining()));
        return Pattern.compile("\\w+ \\d+ (\\d+) \\d+ \\d+;")
                .matcher(registers)
                .results()
                .mapToInt(register -> Integer.parseInt(register.group(1)));
    }

    @Test
    void anApplicationThatIsStoppedGivesItsSlotsBack() throws Exception {
        try (RedisApplication stopped = RedisApplication.start(redis.port(), YAML, Holding.class)) {
            for (int i = 0; i < 16; i++) {
                hold(stopped, "/hold/wide");
            }
            finish();
            await().until(() -> stopped.bean(Throttlers.class).inFlight("wide") == 0); // after the responses
        }
        // Without being given back, the slots would expire after ten seconds.
        await().atMost(Duration.ofSeconds(5)).until(() -> slots("wide").sum() == 0);
        for (int i = 0; i < 16; i++) {
            hold(other, "/hold/wide");
        }
    }

    @Test
    void withoutScriptsTheStartStopsAndSaysWhatToType() {
        assertThatThrownBy(() -> RedisApplication.start(redis.port(), """
                        ratelimit:
                          backend: redis
                          redis.strategy: transaction
                          policies.pool: { in-flight: 3 }
                        """))
                .rootCause()
                .hasMessage(
                        "The throttle policy 'pool' limits the requests in flight, which Redis without scripts doesn't count.");
    }
}
