package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.access.AccessDeniedException;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** The tokens that are given back when the status of the response is known. */
class RefundTests {

    private static final String YAML = """
            ratelimit:
              policies:
                login: { key: ip, rate: 10/1h, paths: /login, phase: before-authentication, refund-on: ["!401"] }
                early: { key: ip, rate: 100/1h, paths: /as/**, refund-on: [4xx, 500] }
                late: { key: user, rate: 100/1h, paths: /as/**, refund-on: [4xx, 500] }
                tight: { key: user, rate: 1/1h, paths: /tight }
                kept: { rate: 100/1h, paths: /tight, phase: before-authentication, refund-on: ["!2xx"] }
                returned: { key: ip, rate: 100/1h, paths: /tight, refund-on: ["!2xx"] }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, BasicSecurity.class, Api.class, BesideMvc.class);

    @Test
    void aLoginLimitCountsWrongPasswordsAlone() {
        for (int i = 0; i < 20; i++) {
            assertThat(server.http().get("/login", basic("alice")).status()).isEqualTo(200);
        }
        for (int i = 0; i < 10; i++) {
            assertThat(server.http().get("/login", basic("alice", "guess" + i)).status())
                    .isEqualTo(401);
        }
        assertThat(server.http().get("/login", basic("alice", "guess")).status())
                .isEqualTo(429);
        assertThat(server.http().get("/login", basic("alice")).status())
                .as("nor the right one from there")
                .isEqualTo(429);
        assertThat(server.http().from("127.0.0.2").get("/login", basic("alice")).status())
                .as("the right one from elsewhere")
                .isEqualTo(200);
    }

    @ParameterizedTest
    @CsvSource({
        "/as/plain/200, 200, false",
        "/as/plain/404, 404, true",
        "/as/plain/500, 500, true",
        "/as/plain/503, 503, false",
        "/as/plain/304, 304, false",
        "/as/error/409, 409, true",
        "/as/nowhere, 404, true",
        "/as/exception, 500, true",
        "/as/bad-request-of-another-service, 500, true",
        "/as/forbidden, 403, true",
        "/as/callable/200, 200, false",
        "/as/callable/404, 404, true",
        "/as/future/404, 404, true",
        "/as/async-exception, 500, true",
        "/as/async-forward, 404, true",
        "/as/streaming, 200, false",
        "/as/timeout, 503, false",
    })
    void theStatusOfTheResponseDecides(String path, int status, boolean refunded) {
        assertThat(server.http().get(path, basic("alice")).status()).isEqualTo(status);
        long left = refunded ? 100 : 99;
        server.awaitEnds();
        assertThat(server.available("early", "127.0.0.1")).isEqualTo(left);
        assertThat(server.available("late", "alice")).isEqualTo(left);
    }

    @Test
    void whileAnAsynchronousAnswerIsOnItsWayTheTokensAreTaken() throws Exception {
        try (RawHttp.Connection connection = server.http().open()) {
            connection.write(RawHttp.text("GET", "/as/waiting", basic("alice"), "Connection: close"));
            server.bean(Api.class).waiting.await();
            assertThat(server.available("early", "127.0.0.1")).isEqualTo(99);
            server.bean(Api.class).answer.countDown();
            assertThat(connection.readToEnd().status()).isEqualTo(404);
        }
        server.awaitEnds();
        assertThat(server.available("early", "127.0.0.1")).isEqualTo(100);
    }

    /** The work has been done, and the client has its 200, even if the connection breaks afterwards. */
    @Test
    void anExceptionAfterTheAnswerHasBegunChangesNothing() {
        assertThatExceptionOfType(UncheckedIOException.class)
                .isThrownBy(() -> server.http().get("/as/begun", basic("alice")));
        server.awaitEnds();
        assertThat(server.available("early", "127.0.0.1")).isEqualTo(99);
    }

    @Test
    void tokensThatARejectionGivesBackAreNotGivenBackTwice() {
        assertThat(server.http().get("/tight", basic("alice")).status()).isEqualTo(200);
        assertThat(server.available("returned", "127.0.0.1")).isEqualTo(99);
        assertThat(server.available("kept")).isEqualTo(99);
        assertThat(server.http().get("/tight", basic("alice")).status()).isEqualTo(429);
        assertThat(server.available("returned", "127.0.0.1")).isEqualTo(99);
        assertThat(server.available("kept")).as("as its refund-on has it").isEqualTo(99);
    }

    @Configuration(proxyBeanMethods = false)
    static class BesideMvc {

        @Bean
        ServletRegistrationBean<HttpServlet> begun() {
            HttpServlet servlet = new HttpServlet() {
                @Override
                protected void doGet(HttpServletRequest request, HttpServletResponse response)
                        throws ServletException, IOException {
                    response.getOutputStream().print("begun");
                    response.flushBuffer();
                    throw new ServletException("on purpose");
                }
            };
            return new ServletRegistrationBean<>(servlet, "/as/begun");
        }
    }

    @Controller
    static class Api {

        final CountDownLatch waiting = new CountDownLatch(1);
        final CountDownLatch answer = new CountDownLatch(1);

        @GetMapping({"/login", "/tight"})
        @ResponseBody
        String welcome() {
            return "welcome";
        }

        @GetMapping("/as/plain/{status}")
        void plain(@PathVariable int status, HttpServletResponse response) {
            response.setStatus(status);
        }

        @GetMapping("/as/error/{status}")
        void error(@PathVariable int status, HttpServletResponse response) throws IOException {
            response.sendError(status);
        }

        @GetMapping("/as/exception")
        void exception() throws ServletException {
            throw new ServletException("on purpose");
        }

        /** It isn't the exception of this name by which Tomcat rejects a request. */
        @GetMapping("/as/bad-request-of-another-service")
        void badRequestOfAnotherService() {
            throw new BadRequestException();
        }

        private static final class BadRequestException extends RuntimeException {

            private static final long serialVersionUID = 1;

            BadRequestException() {
                super("on purpose");
            }
        }

        /** Leaves the filter after authentication as an exception, which Spring Security answers with 403. */
        @GetMapping("/as/forbidden")
        void forbidden() {
            throw new AccessDeniedException("on purpose");
        }

        @GetMapping("/as/callable/{status}")
        @ResponseBody
        Callable<String> callable(@PathVariable int status, HttpServletResponse response) {
            return () -> {
                response.setStatus(status);
                return "called";
            };
        }

        @GetMapping("/as/future/{status}")
        @ResponseBody
        CompletableFuture<String> future(@PathVariable int status, HttpServletResponse response) {
            return CompletableFuture.supplyAsync(() -> {
                response.setStatus(status);
                return "done";
            });
        }

        @GetMapping("/as/async-exception")
        @ResponseBody
        Callable<String> asyncException() {
            return () -> {
                throw new ServletException("on purpose");
            };
        }

        @GetMapping("/as/async-forward")
        Callable<String> asyncForward() {
            return () -> "forward:/as/callable/404";
        }

        @GetMapping("/as/streaming")
        StreamingResponseBody streaming() {
            return out -> out.write("streaming".getBytes(StandardCharsets.UTF_8));
        }

        @GetMapping("/as/timeout")
        @ResponseBody
        DeferredResult<String> timeout() {
            return new DeferredResult<>(200L);
        }

        @GetMapping("/as/waiting")
        @ResponseBody
        Callable<String> waiting(HttpServletResponse response) {
            return () -> {
                waiting.countDown();
                answer.await();
                response.setStatus(404);
                return "waited";
            };
        }
    }
}
