package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import io.lettuce.core.resource.DefaultEventLoopGroupProvider;
import io.lettuce.core.resource.Transports;
import io.netty.channel.EventLoopGroup;
import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;

/** Settlements on a Redis that is slow or hangs, and on threads that Redis's own connections need. */
class RedisSettlementTests {

    private static final String YAML = """
            ratelimit:
              backend: redis
              redis: { strategy: %s, timeout: %s }
              policies:
                one: { rate: 1000/1d, cost: 10, settle: "attribute:tokens", paths: [/costs/**, /once] }
                two: { rate: 1000/1d, cost: 10, settle: "attribute:tokens", paths: /costs/** }
                three: { rate: 1000/1d, cost: 10, settle: "attribute:tokens", paths: /costs/** }
                calls: { rate: 1000/1d, cost: 10, applies-to: annotated }
            """;

    private final RedisProcess redis = RedisProcess.started();
    private final TcpProxy proxy = new TcpProxy(redis.port());

    @AfterEach
    void stop() throws IOException {
        proxy.close();
        redis.close();
    }

    private RedisApplication application(String strategy, String timeout) {
        RedisApplication application =
                RedisApplication.start(proxy.port(), YAML.formatted(strategy, timeout), Settled.class);
        assertThat(application.status("/costs/now?tokens=10")).isEqualTo(200);
        await().until(() -> events(application).size() == 3); // after the response
        events(application).clear();
        application.bean(Events.class).threads.clear();
        return application;
    }

    private static List<String> events(RedisApplication application) {
        return application.bean(Events.class).events;
    }

    private static long available(RedisApplication application, String policy) {
        return application.bean(Throttlers.class).snapshot(policy).available();
    }

    /**
     * The decision of the request takes more than half of its time, and so does the settlement: each is two rounds of
     * 600 ms. The connection of transactions has no other calls.
     */
    @Test
    void aRequestThatUsedUpItsTimeIsSettled() {
        try (RedisApplication application = application("transaction", "2s")) {
            proxy.delay(Duration.ofMillis(600));
            assertThat(application.status("/once?tokens=3")).isEqualTo(200);
            await().untilAsserted(() -> assertThat(events(application)).containsExactly("one SETTLED"));
            proxy.delay(Duration.ZERO);
            assertThat(available(application, "one")).isEqualTo(990 - 3);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void theSettlementsOfARequestTakeOneTimeoutTogetherIfRedisHangs(String strategy) {
        try (RedisApplication application = application(strategy, "2s")) {
            application.bean(Settled.class).proxy = proxy;
            long began = System.nanoTime();
            assertThat(application.status("/costs/hangs?tokens=3")).isEqualTo(200);
            await().untilAsserted(() -> assertThat(events(application))
                    .containsExactlyInAnyOrder("one BACKEND_FAILURE", "two BACKEND_FAILURE", "three BACKEND_FAILURE"));
            assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofMillis(3_900));
        }
    }

    @Test
    void anAsynchronousRequestIsSettledByThreadsForSettlements() {
        try (RedisApplication application = application("script", "5s")) {
            assertThat(application.status("/costs/deferred?tokens=3")).isEqualTo(200);
            await().untilAsserted(() -> assertThat(events(application))
                    .containsExactlyInAnyOrder("one SETTLED", "two SETTLED", "three SETTLED"));
            assertThat(application.bean(Events.class).threads)
                    .hasSize(3)
                    .allMatch(thread -> thread.startsWith("ratelimit-settlement-"));
            assertThat(available(application, "two")).isEqualTo(990 - 3);
        }
    }

    /** The only thread that can read replies of Redis completes the result. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void theThreadThatReadsTheRepliesOfRedisDoesNotWaitForOne(String strategy) {
        try (RedisApplication application = application(strategy, "2s")) {
            Settled calls = application.bean(Settled.class);
            CompletableFuture<Long> result = new CompletableFuture<>();
            application.bean(Calls.class).later(result);
            CompletableFuture<String> thread = new CompletableFuture<>();
            calls.threads.allocated().execute(() -> {
                result.complete(3L);
                thread.complete(Thread.currentThread().getName());
            });
            assertThat(thread.join()).startsWith("lettuce-");
            await().untilAsserted(() -> assertThat(events(application)).isNotEmpty());
            assertThat(events(application)).containsExactly("calls SETTLED");
            assertThat(available(application, "calls")).isEqualTo(997);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void settlementsAreAwaitedWhenTheApplicationStops(String strategy) {
        List<String> events;
        try (RedisApplication application = application(strategy, "5s")) {
            events = events(application);
            List<CompletableFuture<Long>> results = IntStream.range(0, 6)
                    .mapToObj(i -> new CompletableFuture<Long>())
                    .toList();
            results.forEach(application.bean(Calls.class)::later);
            proxy.delay(Duration.ofMillis(50));
            results.forEach(result -> result.complete(3L));
        }
        assertThat(events).isEqualTo(Collections.nCopies(6, "calls SETTLED"));
    }

    static class Calls {

        @RateLimited(policy = "calls", settle = "#result")
        public CompletableFuture<Long> later(CompletableFuture<Long> result) {
            return result;
        }
    }

    static final class Events implements ThrottleListener {

        final List<String> events = new CopyOnWriteArrayList<>();
        final List<String> threads = new CopyOnWriteArrayList<>();

        @Override
        public void decided(Decision decision) {}

        @Override
        public void eventOccurred(ThrottlePolicy policy, Event event) {
            threads.add(Thread.currentThread().getName());
            events.add(policy.name() + " " + event);
        }
    }

    /** One thread for all connections. */
    static final class OneThread extends DefaultEventLoopGroupProvider {

        OneThread() {
            super(1);
        }

        EventLoopGroup allocated() {
            return allocate(Transports.eventLoopGroupClass());
        }
    }

    @Configuration(proxyBeanMethods = false)
    @RestController
    static class Settled {

        final OneThread threads = new OneThread();
        volatile TcpProxy proxy;

        @Bean(destroyMethod = "shutdown")
        ClientResources resources() {
            return DefaultClientResources.builder().eventLoopGroupProvider(threads).build();
        }

        @Bean
        Events events() {
            return new Events();
        }

        @Bean
        Calls calls() {
            return new Calls();
        }

        @GetMapping({"/costs/now", "/once"})
        String now(long tokens, HttpServletRequest request) {
            request.setAttribute("tokens", tokens);
            return "done";
        }

        @GetMapping("/costs/hangs")
        String hangs(long tokens, HttpServletRequest request) {
            proxy.swallow();
            return now(tokens, request);
        }

        @GetMapping("/costs/deferred")
        DeferredResult<String> deferred(long tokens, HttpServletRequest request) {
            DeferredResult<String> result = new DeferredResult<>();
            CompletableFuture.runAsync(() -> result.setResult(now(tokens, request)));
            return result;
        }
    }
}
