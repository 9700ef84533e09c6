package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.error.ErrorPage;
import org.springframework.boot.web.error.ErrorPageRegistrar;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Controller;
import org.springframework.util.SerializationUtils;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.servlet.View;

/** A denied call is a rejection in each dispatch of its request, and in each part of Spring MVC. */
@ExtendWith(OutputCaptureExtension.class)
class RejectedCallDispatchTests {

    private static final String YAML = """
            ratelimit:
              policies:
                narrow: { rate: 1/1h, applies-to: annotated }
                slow: { rate: 1/1h, applies-to: annotated, rejection-delay: 2s }
                counted: { in-flight: 1, paths: /counted/** }
            """;

    private static final Pattern STACK_TRACE =
            Pattern.compile("^(\\s+at |Caused by|\\s+\\.\\.\\. \\d+ )|^[a-z.]+[A-Z]\\w*Exception");

    @RegisterExtension
    static final TestServer server =
            TestServer.open(YAML, Api.class, Failures.class, Work.class, ErrorPageOfAServlet.class);

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/handler/advice",
                "/handler/status",
                "/handler/async",
                "/handler/wrapped",
                "/forward/servlet",
                "/async/servlet",
                "/async/view",
                "/error/page"
            })
    void aDeniedCallIsRejectedWithoutALineInTheLog(String path, CapturedOutput output) {
        assertThat(server.http().get(path).body()).contains("done");
        String before = output.getAll();
        for (int i = 0; i < 2; i++) {
            Response rejected = server.http().get(path);
            assertThat(rejected.status()).isEqualTo(429);
            assertThat(rejected.header("X-RetryAfterMs")).isEqualTo("3600000");
            assertThat(rejected.body()).contains("[\"narrow\"]");
        }
        assertThat(output.getAll().substring(before.length()).lines().filter(RejectedCallDispatchTests::isFailure))
                .as("Spring's own warning of an exception handler that throws, with its stack trace, is left")
                .allMatch(line -> path.startsWith("/handler/")
                        && (line.contains("ExceptionHandlerExceptionResolver")
                                || STACK_TRACE.matcher(line).find()));
    }

    private static boolean isFailure(String line) {
        return line.contains(" WARN ")
                || line.contains(" ERROR ")
                || STACK_TRACE.matcher(line).find();
    }

    @Test
    void anExceptionHandlerThatCatchesTheDenialAnswers() {
        assertThat(server.http().get("/handler/catching").body()).isEqualTo("done");
        Response handled = server.http().get("/handler/catching");
        assertThat(handled.status()).isEqualTo(418);
        assertThat(handled.body()).isEqualTo("caught");
    }

    @Test
    void anExceptionHandlerThatFailsOtherwiseIsNoRejection() {
        server.http().get("/handler/advice");
        assertThat(server.http().get("/handler/broken").status()).isEqualTo(500);
        assertThat(server.http().get("/handler/denied-before").status())
                .as("the handler caught the denial and failed for another reason")
                .isEqualTo(500);
    }

    @Test
    void aRejectionIsDelayedAfterAForward() {
        assertThat(server.http().get("/forward/slow").body()).isEqualTo("done");
        try (RawHttp.Connection connection = server.http().open()) {
            ManualTimeSource time = server.bean(ManualTimeSource.class);
            int before = time.waiting();
            connection.write(RawHttp.text("GET", "/forward/slow"));
            await().until(() -> time.waiting() == before + 1);
            assertThat(connection.hasAnswer()).isFalse();
            server.advance(Duration.ofSeconds(2));
            Response rejected = connection.read();
            assertThat(rejected.status()).isEqualTo(429);
            assertThat(rejected.header("X-RetryAfterMs")).isEqualTo("3598000");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/counted/handler", "/counted/servlet"})
    void aDelayedRejectionIsNotInFlight(String path) {
        assertThat(server.http().get(path).body()).isEqualTo("done");
        try (RawHttp.Connection connection = server.http().open()) {
            ManualTimeSource time = server.bean(ManualTimeSource.class);
            int before = time.waiting();
            connection.write(RawHttp.text("GET", path));
            await().until(() -> time.waiting() == before + 1);
            assertThat(server.bean(Throttlers.class).inFlight("counted")).isZero();
            server.advance(Duration.ofSeconds(2));
            assertThat(connection.read().status()).isEqualTo(429);
        }
    }

    /** As one that came from another node: answers of single policies aren't serialized. */
    @ParameterizedTest
    @ValueSource(strings = {"draft-11", "x-ratelimit", "none"})
    void aDeniedCallOfAnotherNodeIsRejected(String headers) {
        try (TestServer node = TestServer.open(YAML + "  headers: " + headers, Api.class, Work.class)
                .start()) {
            node.http().get("/remote");
            Response rejected = node.http().get("/remote");
            assertThat(rejected.status()).isEqualTo(429);
            assertThat(rejected.header("X-RetryAfterMs")).isEqualTo("3600000");
            assertThat(rejected.header("Retry-After")).isEqualTo("3600");
            assertThat(rejected.body())
                    .contains("\"detail\":\"The request is throttled, please retry after 3600000 ms.\"")
                    .contains("\"violated-policies\":[],\"retryAfterMs\":3600000}");
            assertThat(rejected.all("RateLimit")).isEmpty();
        }
    }

    static class Work {

        @RateLimited("narrow")
        public String once() {
            return "done";
        }

        @RateLimited("slow")
        public String slowly() {
            return "done";
        }
    }

    static class BrokenException extends RuntimeException {

        private static final long serialVersionUID = 1;
    }

    static class FailureException extends RuntimeException {

        private static final long serialVersionUID = 1;
    }

    @RestControllerAdvice
    record Failures(Work work) {

        @ExceptionHandler(FailureException.class)
        String handle() {
            return work.once();
        }

        @ExceptionHandler(ResponseStatusException.class)
        @ResponseStatus(HttpStatus.OK)
        String handleStatus() {
            return work.once();
        }

        @ExceptionHandler(ArithmeticException.class)
        String handleInCallable() throws Exception {
            Callable<String> call = work::once;
            try {
                return call.call();
            } catch (RateLimitExceededException denied) {
                throw new java.util.concurrent.ExecutionException(denied);
            }
        }

        @ExceptionHandler(UnsupportedOperationException.class)
        void handleBoth(HttpServletResponse response) throws IOException {
            try {
                response.getWriter().write(work.once());
            } catch (RateLimitExceededException denied) {
                response.setStatus(418);
                response.getWriter().write("caught");
            }
        }

        @ExceptionHandler(BrokenException.class)
        String fail() {
            throw new IllegalStateException("on purpose");
        }
    }

    @Controller
    static class Api {

        private final Work work;

        Api(Work work) {
            this.work = work;
        }

        @GetMapping("/handler/advice")
        void failure() {
            throw new FailureException();
        }

        @GetMapping("/handler/status")
        void status() {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND);
        }

        @GetMapping("/handler/async")
        @ResponseBody
        Callable<String> async() {
            return () -> {
                throw new FailureException();
            };
        }

        @GetMapping("/handler/wrapped")
        void wrapped() {
            throw new ArithmeticException("on purpose");
        }

        @GetMapping("/handler/catching")
        void catching() {
            throw new UnsupportedOperationException("on purpose");
        }

        @GetMapping("/handler/broken")
        void broken() {
            throw new BrokenException();
        }

        @GetMapping("/handler/denied-before")
        void deniedBefore() {
            try {
                work.once();
            } catch (RateLimitExceededException denied) {
                throw new BrokenException();
            }
        }

        @GetMapping("/forward/servlet")
        String forward() {
            return "forward:/servlet";
        }

        @GetMapping("/counted/handler")
        @ResponseBody
        String slowly() {
            return work.slowly();
        }

        @GetMapping({"/forward/slow", "/counted/servlet"})
        String forwardSlowly() {
            return "forward:/servlet?slow";
        }

        @GetMapping("/async/servlet")
        Callable<String> asyncForward() {
            return () -> "forward:/servlet";
        }

        /** Calls the method outside the reach of exception resolvers. */
        @GetMapping("/async/view")
        Callable<View> asyncView() {
            return () -> (Map<String, ?> model, HttpServletRequest request, HttpServletResponse response) ->
                    response.getWriter().write(work.once());
        }

        @GetMapping("/error/page")
        void error(HttpServletResponse response) throws IOException {
            response.sendError(423);
        }

        @GetMapping("/remote")
        @ResponseBody
        String remote() throws IOException, ClassNotFoundException {
            try {
                return work.once();
            } catch (RateLimitExceededException denied) {
                ByteArrayInputStream bytes = new ByteArrayInputStream(SerializationUtils.serialize(denied));
                throw (RateLimitExceededException) new ObjectInputStream(bytes).readObject();
            }
        }

        @Bean
        static ServletRegistrationBean<HttpServlet> servlet(Work work) {
            HttpServlet servlet = new HttpServlet() {
                @Override
                protected void doGet(HttpServletRequest request, HttpServletResponse response) {
                    try {
                        boolean slow = "slow".equals(request.getQueryString());
                        response.getWriter().write(slow ? work.slowly() : work.once());
                    } catch (IOException ex) {
                        throw new UncheckedIOException(ex);
                    }
                }
            };
            ServletRegistrationBean<HttpServlet> registration = new ServletRegistrationBean<>(servlet, "/servlet");
            registration.setAsyncSupported(true);
            return registration;
        }
    }

    static class ErrorPageOfAServlet {

        @Bean
        static ErrorPageRegistrar page() {
            return registry -> registry.addErrorPages(new ErrorPage(HttpStatus.LOCKED, "/servlet"));
        }
    }
}
