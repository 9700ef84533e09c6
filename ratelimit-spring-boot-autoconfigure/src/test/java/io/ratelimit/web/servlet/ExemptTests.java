package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.annotation.RateLimitExempt;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.core.annotation.Order;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.function.RequestPredicates;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;

/** Exempt requests: a request that a handler without the exemption may get is never free. */
@ExtendWith(OutputCaptureExtension.class)
class ExemptTests {

    private static final String YAML = """
            ratelimit:
              policies:
                site: { rate: 100/1h }
                user: { key: user, rate: 100/1h }
                guard: { rate: 100/1h, phase: before-authentication }
            """;

    @RegisterExtension
    static final TestServer server =
            TestServer.open(YAML, Api.class, AllExempt.class, ByInterface.class, BySuperclass.class, Further.class);

    @ParameterizedTest
    @CsvSource({
        // method, path, status, whether it is free
        "GET, /free, 200, true",
        "HEAD, /free, 200, true",
        "GET, /fr%65e, 200, true",
        "GET, /free;a=b, 200, true",
        "POST, /free, 405, false",
        "OPTIONS, /free, 200, false",
        "PROPFIND, /free, 405, false",
        "GET, //free, 404, false",
        "GET, /free/, 404, false",
        "GET, /charged, 200, false",
        "GET, /meta, 200, true",
        "GET, /controller/one, 200, true",
        "GET, /interface, 200, true",
        "GET, /superclass, 200, true",
        "GET, /items/5, 200, true",
        "GET, /items/special, 200, false",
        "GET, /by-parameter?a, 200, false",
        "GET, /by-parameter, 200, false",
        "GET, /any-method?a, 200, false",
        "GET, /any-method, 200, false",
        "GET, /both-exempt?a, 200, true",
        "GET, /both-exempt, 200, true",
        "GET, /narrow, 400, true",
        "GET, /narrow?a, 200, true",
        "GET, /guarded/x, 200, false",
        "GET, /guarded/x?a, 200, false",
        "GET, /unguarded/x, 200, true",
        "GET, /unknown, 404, false",
    })
    void aRequestIsFreeIfOnlyExemptHandlersMayGetIt(String method, String path, int status, boolean free) {
        assertThat(server.http().request(method, path).status()).isEqualTo(status);
        assertThat(server.available("site")).isEqualTo(free ? 100 : 99);
        assertThat(server.available("guard")).as("whose early phase is written").isEqualTo(99);
    }

    @Test
    void onlyAWrittenEarlyPhaseMayRejectAnExemptEndpoint() {
        RequestPolicies policies = server.bean(RequestPolicies.class);
        assertThat(policies.rejecting("GET", "/free"))
                .extracting(ThrottlePolicy::name)
                .containsExactly("guard");
        assertThat(policies.rejecting("GET", "/charged"))
                .extracting(ThrottlePolicy::name)
                .containsExactly("user", "guard", "site");
    }

    @Test
    void warnsOfExemptionsInVain(CapturedOutput output) {
        int before = output.getOut().length();
        try (TestServer started = TestServer.open(YAML, Api.class).start()) {
            assertThat(started.available("site")).isEqualTo(100);
            assertThat(output.getOut().substring(before).lines().filter(line -> line.contains("@RateLimitExempt")))
                    .hasSize(3)
                    .anyMatch(line -> line.contains("'GET /any-method' has no effect"))
                    .anyMatch(line -> line.contains("'GET /by-parameter' has no effect"))
                    .anyMatch(line -> line.contains("'GET /guarded/{any}' has no effect"));
        }
    }

    @Test
    void behindAFunctionThatMayTakeAnyRequestNothingIsFree() {
        try (TestServer started =
                TestServer.open(YAML, Api.class, AllExempt.class, AnyPath.class).start()) {
            started.refill();
            assertThat(started.http().get("/free").body()).isEqualTo("ok");
            assertThat(started.http().get("/free", "X-Function: yes").body()).isEqualTo("function");
            assertThat(started.available("site")).isEqualTo(98);
        }
    }

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimitExempt
    @interface Free {}

    @RestController
    static class Api {

        @RateLimitExempt
        @GetMapping("/free")
        String free() {
            return "ok";
        }

        @GetMapping("/charged")
        String charged() {
            return "ok";
        }

        @Free
        @GetMapping("/meta")
        String meta() {
            return "ok";
        }

        @RateLimitExempt
        @GetMapping("/items/{id}")
        String item() {
            return "ok";
        }

        @GetMapping("/items/special")
        String special() {
            return "ok";
        }

        @RateLimitExempt
        @GetMapping("/by-parameter")
        String without() {
            return "ok";
        }

        @GetMapping(path = "/by-parameter", params = "a")
        String with() {
            return "ok";
        }

        @RateLimitExempt
        @GetMapping("/any-method")
        String oneMethod() {
            return "ok";
        }

        /** Spring MVC prefers this handler, though the other one has the method. */
        @RequestMapping(path = "/any-method", params = "a")
        String anyMethod() {
            return "ok";
        }

        @RateLimitExempt
        @GetMapping("/both-exempt")
        String bothWithout() {
            return "ok";
        }

        @RateLimitExempt
        @GetMapping(path = "/both-exempt", params = "a")
        String bothWith() {
            return "ok";
        }

        @RateLimitExempt
        @GetMapping(path = "/narrow", params = "a")
        String narrow() {
            return "ok";
        }

        @RateLimitExempt
        @GetMapping(path = "/guarded/{any}", params = "a")
        String guarded() {
            return "ok";
        }

        @GetMapping("/guarded/**")
        String rest() {
            return "ok";
        }

        @RateLimitExempt
        @GetMapping("/unguarded/{any}")
        String unguarded() {
            return "ok";
        }

        @GetMapping("/unguarded/**")
        String restOfUnguarded() {
            return "ok";
        }

        @PostMapping("/posted")
        String posted() {
            return "ok";
        }
    }

    @RestController
    @RateLimitExempt
    @RequestMapping("/controller")
    static class AllExempt {

        @GetMapping("/one")
        String one() {
            return "ok";
        }
    }

    interface Contract {

        @RateLimitExempt
        String get();
    }

    @RestController
    static class ByInterface implements Contract {

        @Override
        @GetMapping("/interface")
        public String get() {
            return "ok";
        }
    }

    @RateLimitExempt
    static class Base {}

    @RestController
    static class BySuperclass extends Base {

        @GetMapping("/superclass")
        String get() {
            return "ok";
        }
    }

    /** A mapping in front of controllers, with other paths than theirs. */
    static class Further {

        @Bean
        RouterFunction<ServerResponse> elsewhere() {
            return RouterFunctions.route(RequestPredicates.GET("/function"), request -> ServerResponse.ok()
                    .build());
        }
    }

    static class AnyPath {

        @Bean
        @Order(0)
        RouterFunction<ServerResponse> anywhere() {
            return RouterFunctions.route(
                    RequestPredicates.headers(
                            headers -> !headers.header("X-Function").isEmpty()),
                    request -> ServerResponse.ok().body("function"));
        }
    }
}
