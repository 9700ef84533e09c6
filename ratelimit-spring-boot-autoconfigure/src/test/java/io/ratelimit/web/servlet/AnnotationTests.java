package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.http.ResponseEntity;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.security.access.AccessDeniedException;
import org.springframework.security.access.prepost.PreAuthorize;
import org.springframework.security.config.annotation.method.configuration.EnableMethodSecurity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;

/** Calls of annotated methods within requests, over HTTP. */
@ExtendWith(OutputCaptureExtension.class)
class AnnotationTests {

    private static final String YAML = """
            ratelimit:
              policies:
                site: { key: ip, rate: 1000/1h }
                guard: { key: ip, rate: 1000/1h, phase: before-authentication }
                work: { rate: 1/1h, applies-to: annotated, status: 503 }
                mine: { key: [user, endpoint], rate: 1/1h, applies-to: annotated }
                address: { key: ip, rate: 1/1h, applies-to: annotated }
                many: { rate: 100/1d, applies-to: annotated }
                priced: { rate: 10/1h, key: ["query:q"], cost: "query('n')", max-cost: 6, applies-to: annotated }
            """;

    private static final Class<?>[] SOURCES = {Api.class, Work.class, Failures.class, Routes.class, BasicSecurity.class
    };

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, SOURCES);

    private final RawHttp http = server.http();

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/controller",
                "/service",
                "/writer",
                "/wrapped/completion",
                "/wrapped/execution",
                "/wrapped/servlet",
                "/callable",
                "/deferred",
                "/future",
                "/function",
                "/servlet",
                "/filter"
            })
    void aDeniedCallThatEndsTheRequestIsRejectedLikeInTheFilter(String path, CapturedOutput output) {
        assertThat(http.get(path, basic("alice")).status()).isEqualTo(200);
        int logged = output.getAll().length();

        Response refusal = http.get(path, basic("alice"));

        assertThat(refusal.status()).isEqualTo(503);
        assertThat(refusal.header("Retry-After")).isEqualTo("3600");
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("3600000");
        assertThat(refusal.header("RateLimit-Policy")).isEqualTo("\"work\";q=1;w=3600");
        assertThat(refusal.header("RateLimit")).isEqualTo("\"work\";r=0;t=3600");
        assertThat(refusal.header("Cache-Control")).isEqualTo("no-store");
        assertThat(refusal.header("Content-Type")).startsWith("application/problem+json");
        assertThat(refusal.body())
                .startsWith("{\"type\":")
                .endsWith("\"violated-policies\":[\"work\"],\"retryAfterMs\":3600000}");
        boolean workDone = !path.equals("/filter");
        assertThat(server.available("site", "127.0.0.1"))
                .as("the filter's policy keeps what it took, unless no handler was reached")
                .isEqualTo(workDone ? 998 : 999);
        assertThat(server.available("guard", "127.0.0.1")).isEqualTo(998);
        assertThat(output.getAll().substring(logged).lines().filter(line -> !line.contains("denied")))
                .isEmpty();
    }

    @Test
    void anExceptionThatTheApplicationWrapsIsLeftToIt() {
        http.get("/converted", basic("alice"));
        Response converted = http.get("/converted", basic("alice"));
        assertThat(converted.status()).isEqualTo(418);
        assertThat(server.available("site", "127.0.0.1")).isEqualTo(998);
    }

    @Test
    void anAnswerThatHasBegunIsNotReplaced() {
        http.get("/committed", basic("alice"));
        assertThatExceptionOfType(UncheckedIOException.class)
                .isThrownBy(() -> http.get("/committed", basic("alice")))
                .withMessageContaining("the server closed the connection");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Content-Encoding",
                "Content-Language",
                "Content-Disposition",
                "Content-Location",
                "Content-Range",
                "ETag",
                "Last-Modified"
            })
    void headersOfTheReplacedBodyAreRemoved(String header) {
        assertThat(http.get("/described", basic("alice")).header(header)).isNotNull();
        Response refusal = http.get("/described", basic("alice"));
        assertThat(refusal.status()).isEqualTo(503);
        assertThat(refusal.header(header)).isNull();
        assertThat(refusal.body()).contains("[\"work\"]");
    }

    @Test
    void tokensOfMadeCallsAreKeptWhenALaterCallIsDenied() {
        assertThat(http.get("/batch/60", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("many")).isEqualTo(40);
        Response refusal = http.get("/batch/60", basic("alice"));
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body()).contains("[\"many\"]");
        assertThat(server.available("many")).isZero();
    }

    @Test
    void thePolicysOwnKeyIsThatOfTheRequest() {
        assertThat(http.get("/mine/1", basic("alice")).status()).isEqualTo(200);
        assertThat(http.get("/mine/2", basic("alice")).status()).isEqualTo(429);
        assertThat(http.get("/mine/1", basic("bob")).status()).isEqualTo(200);
        assertThat(http.get("/mine-too", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("mine", "alice", "GET /mine/{id}")).isZero();

        assertThat(http.get("/address", basic("alice")).status()).isEqualTo(200);
        assertThat(http.get("/address", basic("bob")).status()).isEqualTo(429);
        assertThat(http.from("127.0.0.9").get("/address", basic("bob")).status())
                .isEqualTo(200);
    }

    @Test
    void thePolicysOwnCostIsThatOfTheRequest() {
        assertThat(http.get("/priced?q=a&n=4", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("priced", "a")).isEqualTo(6);
        assertThat(http.get("/priced?q=a&n=100", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("priced", "a")).isZero();
        assertThat(http.get("/priced?q=b&n=none", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("priced", "b")).as("fails: max-cost").isEqualTo(4);
        assertThat(http.get("/priced?q=c", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("priced", "c")).as("missing: 1").isEqualTo(9);
    }

    @Test
    void outsideARequestCallsWithoutAKeyShareABucket() {
        Work work = server.bean(Work.class);
        work.mine();
        assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(work::mine);
        assertThat(http.get("/mine/1", basic("alice")).status()).isEqualTo(200);
    }

    @Test
    void aCallThatSecurityForbidsTakesNoToken() {
        assertThat(http.get("/admin", basic("alice")).status()).isEqualTo(403);
        assertThat(server.available("work")).isEqualTo(1);
        assertThat(http.get("/admin", basic("admin")).status()).isEqualTo(200);
        assertThat(server.available("work")).isZero();
    }

    @Test
    void anAsynchronousMethodIsChargedWhereItRunsAndItsFutureFails() {
        Work work = server.bean(Work.class);
        assertThat(work.async().join()).isNotEqualTo(Thread.currentThread().getName());
        CompletableFuture<String> refused = work.async();
        assertThatExceptionOfType(ExecutionException.class)
                .isThrownBy(refused::get)
                .withCauseInstanceOf(RateLimitExceededException.class);
    }

    @RestController
    static class Api {

        private final Work work;

        Api(Work work) {
            this.work = work;
        }

        @RateLimited("work")
        @GetMapping("/controller")
        String controller() {
            return work.toString();
        }

        @GetMapping("/service")
        String service() {
            return work.once();
        }

        @GetMapping("/writer")
        void writer(HttpServletResponse response) throws IOException {
            response.getWriter().write("to be dropped");
            work.once();
        }

        @GetMapping("/wrapped/completion")
        String completion() {
            return CompletableFuture.supplyAsync(work::once).join();
        }

        @GetMapping("/wrapped/execution")
        String execution() throws Exception {
            return CompletableFuture.supplyAsync(work::once).get();
        }

        @GetMapping("/wrapped/servlet")
        String servlet() throws ServletException {
            try {
                return work.once();
            } catch (RateLimitExceededException refused) {
                throw new ServletException(refused);
            }
        }

        @GetMapping("/converted")
        String converted() {
            try {
                return work.once();
            } catch (RateLimitExceededException refused) {
                throw new IllegalStateException(refused);
            }
        }

        @GetMapping("/described")
        void described(HttpServletResponse response) throws IOException {
            response.setHeader("Content-Encoding", "gzip");
            response.setHeader("Content-Language", "de");
            response.setLocale(Locale.FRENCH);
            response.setHeader("Content-Disposition", "attachment; filename=all.zip");
            response.setHeader("Content-Location", "/all.zip");
            response.setHeader("Content-Range", "bytes 0-1/2");
            response.setHeader("ETag", "\"1\"");
            response.setDateHeader("Last-Modified", 0);
            response.getWriter().write("to be dropped");
            work.once();
        }

        @GetMapping("/committed")
        void committed(HttpServletResponse response) throws IOException {
            response.getWriter().write("begun");
            response.flushBuffer();
            work.once();
        }

        @GetMapping("/callable")
        Callable<String> callable() {
            return work::once;
        }

        @GetMapping("/deferred")
        DeferredResult<String> deferred() {
            DeferredResult<String> result = new DeferredResult<>();
            CompletableFuture.supplyAsync(work::once)
                    .whenComplete((text, failure) -> result.setErrorResult(failure == null ? text : failure));
            return result;
        }

        @GetMapping("/future")
        CompletableFuture<String> future() {
            return CompletableFuture.supplyAsync(work::once);
        }

        @GetMapping("/batch/{size}")
        String batch(@PathVariable int size) {
            for (int i = 0; i < size; i++) {
                work.many();
            }
            return "done";
        }

        @GetMapping("/mine/{id}")
        String mine(@PathVariable int id) {
            return work.mine();
        }

        @GetMapping("/mine-too")
        String mineToo() {
            return work.mine();
        }

        @GetMapping("/address")
        String address() {
            return work.address();
        }

        @GetMapping("/priced")
        @RateLimited("priced")
        String priced() {
            return "done";
        }

        @GetMapping("/admin")
        String admin() {
            return work.admin();
        }

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> anything(Exception failure) throws Exception {
            if (failure instanceof AccessDeniedException) {
                throw failure;
            }
            return ResponseEntity.status(418).body("handled");
        }
    }

    @EnableAsync
    @EnableMethodSecurity
    static class Work {

        @RateLimited("work")
        public String once() {
            return "done";
        }

        @RateLimited("many")
        public void many() {}

        @RateLimited("mine")
        public String mine() {
            return "done";
        }

        @RateLimited("address")
        public String address() {
            return "done";
        }

        @RateLimited("work")
        @PreAuthorize("authentication.name == 'admin'")
        public String admin() {
            return "done";
        }

        @Async
        @RateLimited("work")
        public CompletableFuture<String> async() {
            return CompletableFuture.completedFuture(Thread.currentThread().getName());
        }
    }

    @RestControllerAdvice
    static class Failures {

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> anything(Exception failure) throws Exception {
            if (failure instanceof AccessDeniedException) {
                throw failure;
            }
            return ResponseEntity.status(418).body("handled");
        }
    }

    /** Router functions beside controllers. */
    static class Routes {

        @Bean
        RouterFunction<ServerResponse> function(Work work) {
            return RouterFunctions.route()
                    .GET("/function", request -> ServerResponse.ok().body(work.once()))
                    .GET("/filter", request -> ServerResponse.ok().body("done"))
                    .build();
        }

        @Bean
        ServletRegistrationBean<HttpServlet> other(Work work) {
            return new ServletRegistrationBean<>(
                    new HttpServlet() {
                        @Override
                        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                                throws IOException {
                            response.getWriter().write(work.once());
                        }
                    },
                    "/servlet");
        }

        @Bean
        FilterRegistrationBean<Filter> calling(Work work) {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                work.once();
                chain.doFilter(request, response);
            });
            registration.addUrlPatterns("/filter");
            return registration;
        }
    }
}
