package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.PlainStore;
import io.ratelimit.annotation.RateLimited;
import jakarta.servlet.Filter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;

/** The time of one request for a remote store whose calls take 40 ms each, on whichever of its threads they are made. */
@Timeout(60)
class RequestBudgetTests {

    private static final String YAML = """
            ratelimit:
              redis.timeout: 100ms
              policies:
                calls: { rate: 1000/1d, applies-to: annotated }
                returned: { rate: 1000/1d, paths: /returned, refund-on: 202 }
            management:
              server.port: 0
              endpoints.web.exposure.include: work
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Application.class);

    private final SlowStore store = server.bean(SlowStore.class);

    @BeforeEach
    void countAnew() {
        store.takes.set(0);
        store.takesMillis = 40;
    }

    @Test
    void theCallsOfACallableShareTheTimeOfTheRequest() {
        assertThat(server.http().get("/blocking").status()).isEqualTo(200);
        assertThat(store.takes).as("of eight, within 100 ms").hasValue(3);
        store.takes.set(0);
        server.advance(Duration.ofMinutes(1));
        assertThat(server.http().get("/callable").status()).isEqualTo(200);
        assertThat(store.takes).hasValue(3);
    }

    @Test
    void theCallsOfARequestThatIsForwardedBeforeTheLimitsSeeItShareItsTime() {
        server.advance(Duration.ofMinutes(1));
        assertThat(server.http().get("/forwarded").status()).isEqualTo(200);
        assertThat(store.takes).hasValue(3);
    }

    @Test
    void theManagementPortHasTheDeadline() {
        int port = server.bean(Environment.class).getRequiredProperty("local.management.port", int.class);
        assertThat(new RawHttp(port, "127.0.0.1").get("/actuator/work").status())
                .isEqualTo(200);
        assertThat(store.takes).hasValue(3);
    }

    @Test
    void aRefundDoesNotHoldTheThreadThatCompletesTheRequest() {
        store.takesMillis = 0;
        assertThat(server.http().get("/returned").status()).isEqualTo(202);
        await().until(() -> !store.returners.isEmpty());
        assertThat(store.returners).singleElement().asString().startsWith("ratelimit-settlement-");
    }

    @Configuration(proxyBeanMethods = false)
    static class Application {

        @Bean
        SlowStore store(ManualTimeSource time) {
            return new SlowStore(time);
        }

        /** A filter of the lowest order that stands in front of all filters of the limits. */
        @Bean
        FilterRegistrationBean<Filter> forwarding() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) ->
                    request.getRequestDispatcher("/blocking").forward(request, response));
            registration.addUrlPatterns("/forwarded");
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            return registration;
        }

        @Bean
        Calls calls() {
            return new Calls();
        }

        @Bean
        Api api(Calls calls) {
            return new Api(calls);
        }

        @Bean
        Work work(Calls calls) {
            return new Work(calls);
        }
    }

    /** A store that allows all. */
    static final class SlowStore extends PlainStore {

        final AtomicInteger takes = new AtomicInteger();
        final List<String> returners = new CopyOnWriteArrayList<>();
        volatile long takesMillis = 40;
        private final ManualTimeSource time;

        SlowStore(ManualTimeSource time) {
            super(BucketStore.local(time));
            this.time = time;
        }

        @Override
        public Decision take(List<Charge> charges) {
            takes.incrementAndGet();
            time.advance(Duration.ofMillis(takesMillis));
            return super.take(charges);
        }

        @Override
        public void giveBack(List<Answer> taken) {
            returners.add(Thread.currentThread().getName());
            super.giveBack(taken);
        }
    }

    static class Calls {

        @RateLimited("calls")
        public void one() {}
    }

    @RestController
    static class Api {

        private final Calls calls;

        Api(Calls calls) {
            this.calls = calls;
        }

        String eight() {
            for (int i = 0; i < 8; i++) {
                calls.one();
            }
            return "done";
        }

        @GetMapping("/blocking")
        String blocking() {
            return eight();
        }

        @GetMapping("/callable")
        Callable<String> callable() {
            return this::eight;
        }

        @GetMapping("/returned")
        DeferredResult<ResponseEntity<String>> returned() {
            DeferredResult<ResponseEntity<String>> result = new DeferredResult<>();
            new Thread(() -> result.setResult(
                            ResponseEntity.status(HttpStatus.ACCEPTED).body("done")))
                    .start();
            return result;
        }
    }

    @Endpoint(id = "work")
    static class Work {

        private final Calls calls;

        Work(Calls calls) {
            this.calls = calls;
        }

        @ReadOperation
        public String work() {
            for (int i = 0; i < 8; i++) {
                calls.one();
            }
            return "done";
        }
    }
}
