package io.ratelimit.web.servlet;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.ActualCost;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.connector.CoyoteAdapter;
import org.apache.coyote.AbstractProtocol;
import org.apache.coyote.Request;
import org.apache.tomcat.util.net.AbstractEndpoint;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/** Requests that Tomcat loses: it calls none of their listeners any more. */
@Timeout(60)
class LostRequestTests {

    private static final long TOKENS = 1000;
    private static final long COST = 300;

    private static final String YAML = """
            ratelimit:
              policies:
                pool: { in-flight: 1, paths: /** }
                tokens: { rate: 1000/1d, cost: 10, settle: code, paths: [ /broken/**, /stopped ] }
                late: { rate: 1000/1d, cost: 10, settle: code, refund-on: 200, paths: /stopped }
                unset: { rate: 1000/1d, cost: 10, settle: code, refund-on: 200, paths: /stopped }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, Server.class);

    private final Api api = server.bean(Api.class);
    private final Throttlers throttlers = server.bean(Throttlers.class);

    @BeforeAll
    static void letTheApplicationWriteLate() {
        Connector connector = server.bean(Server.class).tomcat().getTomcat().getConnector();
        connector.getProtocolHandler().setAdapter(new LateAdapter(connector, server.bean(Api.class)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"/broken/deferred", "/broken/events"})
    void aFirstWriteThatFailsWhenTheRequestHasLeftTheFiltersReleasesItsSlotAndPays(String path) throws Exception {
        api.leaves = new CountDownLatch(1);
        api.failed = new CountDownLatch(1);
        try (Connection client = server.http().open()) {
            client.write(RawHttp.text("GET", path));
            api.begun.acquire();
            client.reset();
        }
        api.failed.await();
        assertThat(throttlers.inFlight("pool")).isEqualTo(1);

        await().until(() -> {
            server.advance(Duration.ofSeconds(1));
            return throttlers.inFlight("pool") == 0;
        });
        assertThat(server.available("tokens")).isEqualTo(TOKENS - COST);
    }

    /** A late event of a timeout of the connection's previous request takes the processor too. */
    @ParameterizedTest
    @CsvSource({"true, 60", "false, 89"})
    void aRequestWhoseProcessorIsTakenReleasesItsSlot(boolean hasResult, int seconds) throws Exception {
        try (Connection client = server.http().open()) {
            client.write(RawHttp.text("GET", "/lost"));
            api.begun.acquire();
            Server connections = server.bean(Server.class);
            await().until(connections::takeProcessor);
            if (hasResult) {
                api.lost.setResult("done");
            }

            server.advance(Duration.ofSeconds(1)); // notices the end of its work
            server.advance(Duration.ofSeconds(seconds));
            assertThat(throttlers.inFlight("pool")).isEqualTo(1);
            server.advance(Duration.ofSeconds(1));
            assertThat(throttlers.inFlight("pool")).isZero();
            assertThat(client.hasAnswer()).isFalse();
        }
    }

    /** Its result may be large, and its client slow. */
    @Test
    void aDispatchHoldsTheSlotAsLongAsItRuns() throws Exception {
        CompletableFuture<Response> slow = get("/slow");
        api.begun.acquire();
        server.advance(Duration.ofHours(1));
        server.advance(Duration.ofHours(1));
        assertThat(throttlers.inFlight("pool")).isEqualTo(1);
        api.rendered.countDown();
        assertThat(slow.get().status()).isEqualTo(200);
        await().until(() -> throttlers.inFlight("pool") == 0);
    }

    @Test
    void workWithoutATimeoutHoldsTheSlotAsLongAsItRuns() throws Exception {
        CompletableFuture<Response> endless = get("/endless");
        api.begun.acquire();
        server.advance(Duration.ofHours(1));
        server.advance(Duration.ofHours(1));
        assertThat(throttlers.inFlight("pool")).isEqualTo(1);
        api.lost.setResult("done");
        assertThat(endless.get().status()).isEqualTo(200);
        await().until(() -> throttlers.inFlight("pool") == 0);
    }

    /** As after a machine stood still: only the clock says that the container has lost it. */
    @Test
    void aRequestThatTheContainerCompletesAfterAllIsSettledOnce() throws Exception {
        CompletableFuture<Response> stopped = get("/stopped");
        api.begun.acquire();
        await().until(() -> {
            server.advance(Duration.ofSeconds(30));
            return throttlers.inFlight("pool") == 0;
        });
        long left = server.available("tokens");
        assertThat(left).isLessThan(TOKENS - COST / 2);
        ActualCost cost = requireNonNull(api.stopped);
        assertThat(cost.settle("late", COST)).isTrue();
        assertThat(cost.settle("late", COST)).as("settled").isFalse();
        assertThat(server.available("late")).isLessThan(TOKENS - COST / 2);
        assertThat(server.available("unset")).isLessThan(TOKENS);

        api.lost.setResult("done");
        assertThat(stopped.get().status()).isEqualTo(200);
        api.completed.acquire();
        assertThat(server.available("tokens")).isEqualTo(left);
        assertThat(server.available("late")).as("settled, and not given back").isLessThan(TOKENS - COST / 2);
        assertThat(server.available("unset")).as("given back").isEqualTo(TOKENS);
    }

    private static CompletableFuture<Response> get(String path) {
        return CompletableFuture.supplyAsync(() -> server.http().get(path), task -> new Thread(task).start());
    }

    /** Returns from a request only after the application has failed to write. */
    private static final class LateAdapter extends CoyoteAdapter {

        private final Api api;

        LateAdapter(Connector connector, Api api) {
            super(connector);
            this.api = api;
        }

        @Override
        public void service(Request request, org.apache.coyote.Response response) throws Exception {
            super.service(request, response);
            api.leaves.countDown();
            api.failed.await();
        }
    }

    @Component
    static class Server {

        private final WebServerApplicationContext context;

        Server(WebServerApplicationContext context) {
            this.context = context;
        }

        /** Takes the processor of a connection that has one. */
        boolean takeProcessor() throws ReflectiveOperationException {
            Method endpoint = AbstractProtocol.class.getDeclaredMethod("getEndpoint");
            endpoint.setAccessible(true);
            AbstractEndpoint<?, ?> connections = (AbstractEndpoint<?, ?>)
                    endpoint.invoke(tomcat().getTomcat().getConnector().getProtocolHandler());
            return connections.getConnections().stream().anyMatch(one -> one.takeCurrentProcessor() != null);
        }

        TomcatWebServer tomcat() {
            return (TomcatWebServer) requireNonNull(context.getWebServer());
        }
    }

    @RestController
    static class Api {

        final Semaphore begun = new Semaphore(0);
        volatile CountDownLatch leaves = new CountDownLatch(0);
        volatile CountDownLatch failed = new CountDownLatch(0);
        final Semaphore completed = new Semaphore(0);
        final CountDownLatch rendered = new CountDownLatch(1);
        volatile DeferredResult<Object> lost = new DeferredResult<>();
        volatile @Nullable ActualCost stopped;

        @GetMapping("/broken/deferred")
        DeferredResult<String> deferred(HttpServletResponse response, ActualCost cost) throws IOException {
            OutputStream out = response.getOutputStream();
            DeferredResult<String> result = new DeferredResult<>();
            untilItFails(cost, () -> {
                out.write('1');
                out.flush();
            });
            return result;
        }

        @GetMapping("/broken/events")
        SseEmitter events(ActualCost cost) {
            SseEmitter events = new SseEmitter();
            untilItFails(cost, () -> events.send("event"));
            return events;
        }

        @GetMapping("/lost")
        DeferredResult<Object> lost() {
            return begin(new DeferredResult<>(30_000L));
        }

        @GetMapping("/stopped")
        DeferredResult<Object> stopped(ActualCost cost) {
            stopped = cost;
            cost.settle("tokens", COST);
            return begin(new DeferredResult<>(30_000L));
        }

        @Bean
        FilterRegistrationBean<Filter> outer() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                chain.doFilter(request, response);
                if (request.isAsyncStarted()) {
                    request.getAsyncContext().addListener(new OnComplete(completed));
                }
            });
            registration.addUrlPatterns("/stopped");
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            registration.setAsyncSupported(true);
            return registration;
        }

        @GetMapping("/endless")
        DeferredResult<Object> endless() {
            return begin(new DeferredResult<>(0L));
        }

        private DeferredResult<Object> begin(DeferredResult<Object> result) {
            lost = result;
            begun.release();
            return result;
        }

        @GetMapping("/slow")
        CompletableFuture<Slow> slow() {
            return CompletableFuture.completedFuture(new Slow(this));
        }

        private void untilItFails(ActualCost cost, Write write) {
            begun.release();
            new Thread(() -> {
                        try {
                            leaves.await();
                            while (true) {
                                write.once();
                            }
                        } catch (IOException | InterruptedException gone) {
                            cost.settle("tokens", COST);
                            failed.countDown();
                        }
                    })
                    .start();
        }

        private interface Write {

            void once() throws IOException;
        }
    }

    /** A result that takes as long to write as the test likes. */
    public static final class Slow {

        private final Api api;

        Slow(Api api) {
            this.api = api;
        }

        public String getText() throws InterruptedException {
            api.begun.release();
            api.rendered.await();
            return "done";
        }
    }
}
