package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.channel.Channel;
import io.netty.channel.EventLoop;
import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;

/** Settlements on a Redis that is slow or hangs, and of results that come later. */
@Tag("slow")
@Tag("timed")
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

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    @AutoClose
    private final TcpProxy proxy = new TcpProxy(redis.port());

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
     * 1.1 seconds. The connection of transactions has no other calls.
     */
    @Test
    void aRequestThatUsedUpItsTimeIsSettled() {
        try (RedisApplication application = application("transaction", "4s")) {
            proxy.delay(Duration.ofMillis(1_100));
            assertThat(application.status("/once?tokens=3")).isEqualTo(200);
            await().untilAsserted(() -> assertThat(events(application)).containsExactly("one SETTLED"));
            proxy.delay(Duration.ZERO);
            assertThat(available(application, "one")).isEqualTo(990 - 3);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void theSettlementsOfARequestTakeOneTimeoutTogetherIfRedisHangs(String strategy) {
        try (RedisApplication application = application(strategy, "4s")) {
            application.bean(Settled.class).proxy = proxy;
            long began = System.nanoTime();
            assertThat(application.status("/costs/hangs?tokens=3")).isEqualTo(200);
            await().untilAsserted(() -> assertThat(events(application))
                    .containsExactlyInAnyOrder("one BACKEND_FAILURE", "two BACKEND_FAILURE", "three BACKEND_FAILURE"));
            assertThat(Duration.ofNanos(System.nanoTime() - began))
                    .as("two timeouts would be eight seconds")
                    .isLessThan(Duration.ofMillis(7_900));
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

    /** The thread of the connection that all calls of the script share completes the result. */
    @Test
    void theThreadThatReadsTheRepliesOfRedisDoesNotWaitForOne() {
        try (RedisApplication application = application("script", "2s")) {
            List<EventLoop> threads = application.bean(Settled.class).threads;
            assertThat(threads).hasSize(1);
            CompletableFuture<Long> result = new CompletableFuture<>();
            application.bean(Calls.class).later(result);
            threads.get(0).execute(() -> result.complete(3L));
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

    @Configuration(proxyBeanMethods = false)
    @RestController
    static class Settled {

        final List<EventLoop> threads = new CopyOnWriteArrayList<>();
        volatile TcpProxy proxy;

        /** Notes the threads of the limiter's connections. The application opens none. */
        @Bean(destroyMethod = "shutdown")
        ClientResources resources() {
            return DefaultClientResources.builder()
                    .nettyCustomizer(new NettyCustomizer() {
                        @Override
                        public void afterChannelInitialized(Channel channel) {
                            threads.add(channel.eventLoop());
                        }
                    })
                    .build();
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
