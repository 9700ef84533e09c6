package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;
import org.springframework.web.util.WebUtils;

/** A request is charged once, for any number of dispatches. */
class DispatchTests {

    private static final String YAML = """
            ratelimit:
              policies:
                early: { rate: 100/1h }
                late: { key: user, rate: 100/1h }
                target: { rate: 100/1h, paths: /target }
                tight: { key: ip, rate: 1/1h, paths: /tight }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, Failures.class, OnAllDispatches.class);

    @ParameterizedTest
    @CsvSource({
        "/plain, 200, plain",
        "/callable, 200, callable",
        "/deferred, 200, deferred",
        "/future, 200, future",
        "/streaming, 200, streaming",
        "/forward, 200, target",
        "/async-forward, 200, target",
        "/include, 200, included:target",
        "/send-error, 409, Conflict",
        "/exception, 500, Internal Server Error",
        "/async-exception, 500, Internal Server Error",
        "/handled, 418, handled",
        "/async-handled, 418, handled",
        "/unknown, 404, Not Found",
    })
    void everyRequestIsChargedOnce(String path, int status, String body) {
        Response response = server.http().get(path);
        assertThat(response.status()).isEqualTo(status);
        assertThat(response.body()).contains(body);
        assertThat(server.available("early")).isEqualTo(99);
        assertThat(server.available("target"))
                .as("nobody asked for it from outside")
                .isEqualTo(100);
        assertThat(response.all("RateLimit")).hasSize(1);

        assertThat(server.http().get("/plain").header("RateLimit"))
                .as("the late phase has paid once as well")
                .startsWith("\"late\";r=98;");
    }

    @Test
    void anExceptionHandlerForEverythingDoesNotSeeDeniedCalls() {
        server.http().get("/tight");
        Response refusal = server.http().get("/tight");
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body()).contains("[\"tight\"]");
    }

    @Test
    void theErrorOfARequestThatNeverGotToAFilterIsCharged() {
        assertThat(server.http().get("/blocked").status()).isEqualTo(403);
        assertThat(server.available("early"))
                .as("its error dispatch passes Spring Security")
                .isEqualTo(99);
    }

    @Test
    void theFiltersAreForAllDispatchesButIncludes() {
        List<FilterRegistrationBean<?>> registrations =
                List.of(server.bean(OnAllDispatches.class).before, server.bean(OnAllDispatches.class).after);
        assertThat(registrations).allSatisfy(registration -> assertThat(registration.determineDispatcherTypes())
                .isEqualTo(EnumSet.complementOf(EnumSet.of(DispatcherType.INCLUDE))));
    }

    @Controller
    static class Api {

        @GetMapping({"/plain", "/tight"})
        @ResponseBody
        String plain() {
            return "plain";
        }

        @GetMapping("/target")
        @ResponseBody
        String target() {
            return "target";
        }

        @GetMapping("/callable")
        @ResponseBody
        Callable<String> callable() {
            return () -> "callable";
        }

        @GetMapping("/deferred")
        @ResponseBody
        DeferredResult<String> deferred() {
            DeferredResult<String> result = new DeferredResult<>();
            CompletableFuture.runAsync(() -> result.setResult("deferred"));
            return result;
        }

        @GetMapping("/future")
        @ResponseBody
        CompletableFuture<String> future() {
            return CompletableFuture.supplyAsync(() -> "future");
        }

        @GetMapping("/streaming")
        StreamingResponseBody streaming() {
            return out -> out.write("streaming".getBytes(StandardCharsets.UTF_8));
        }

        @GetMapping("/forward")
        String forward() {
            return "forward:/target";
        }

        @GetMapping("/async-forward")
        Callable<String> asyncForward() {
            return () -> "forward:/target";
        }

        @GetMapping("/include")
        void include(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException {
            response.getOutputStream().print("included:");
            request.getRequestDispatcher("/target").include(request, response);
        }

        @GetMapping("/send-error")
        void error(HttpServletResponse response) throws IOException {
            response.sendError(409);
        }

        @GetMapping("/exception")
        void exception() throws ServletException {
            throw new ServletException("on purpose");
        }

        @GetMapping("/async-exception")
        @ResponseBody
        Callable<String> asyncException() {
            return () -> {
                throw new ServletException("on purpose");
            };
        }

        @GetMapping("/handled")
        void handled() {
            throw new IllegalStateException("on purpose");
        }

        @GetMapping("/async-handled")
        @ResponseBody
        Callable<String> asyncHandled() {
            return () -> {
                throw new IllegalStateException("on purpose");
            };
        }
    }

    @RestControllerAdvice
    static class Failures {

        @ExceptionHandler(IllegalStateException.class)
        ResponseEntity<String> handle() {
            return ResponseEntity.status(418).body("handled");
        }

        /** Leaves the response to the container like an unhandled failure, but without lines in the log. */
        @ExceptionHandler(Exception.class)
        void leave(HttpServletRequest request, HttpServletResponse response, Exception failure) throws IOException {
            request.setAttribute(WebUtils.ERROR_EXCEPTION_ATTRIBUTE, failure);
            response.sendError(
                    failure instanceof ServletException && failure.getMessage().equals("on purpose") ? 500 : 404);
        }
    }

    /** A possible registration by a user: the same filter once more, and for every dispatch. */
    static class OnAllDispatches {

        private final FilterRegistrationBean<RateLimitFilter> before;
        private final FilterRegistrationBean<RateLimitFilter> after;

        OnAllDispatches(
                FilterRegistrationBean<RateLimitFilter> rateLimitFilterBeforeAuthentication,
                FilterRegistrationBean<RateLimitFilter> rateLimitFilterAfterAuthentication) {
            this.before = rateLimitFilterBeforeAuthentication;
            this.after = rateLimitFilterAfterAuthentication;
        }

        @Bean
        static FilterRegistrationBean<jakarta.servlet.Filter> onceMoreBefore(
                FilterRegistrationBean<RateLimitFilter> rateLimitFilterBeforeAuthentication) {
            return everywhere("onceMoreBefore", rateLimitFilterBeforeAuthentication);
        }

        @Bean
        static FilterRegistrationBean<jakarta.servlet.Filter> onceMoreAfter(
                FilterRegistrationBean<RateLimitFilter> rateLimitFilterAfterAuthentication) {
            return everywhere("onceMoreAfter", rateLimitFilterAfterAuthentication);
        }

        /** Stands before all other filters, and lets the container answer. */
        @Bean
        static FilterRegistrationBean<jakarta.servlet.Filter> firewall() {
            FilterRegistrationBean<jakarta.servlet.Filter> registration = new FilterRegistrationBean<>(
                    (request, response, chain) -> ((HttpServletResponse) response).sendError(403));
            registration.addUrlPatterns("/blocked");
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            return registration;
        }

        private static FilterRegistrationBean<jakarta.servlet.Filter> everywhere(
                String name, FilterRegistrationBean<RateLimitFilter> registered) {
            FilterRegistrationBean<jakarta.servlet.Filter> registration =
                    new FilterRegistrationBean<>(registered.getFilter());
            registration.setName(name);
            registration.setDispatcherTypes(EnumSet.allOf(DispatcherType.class));
            registration.setAsyncSupported(true);
            return registration;
        }
    }
}
