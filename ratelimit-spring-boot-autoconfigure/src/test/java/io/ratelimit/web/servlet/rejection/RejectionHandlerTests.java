package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

class RejectionHandlerTests {

    private static final String YAML = """
            ratelimit:
              policies:
                hello: { rate: 1/1m, paths: /hello, phase: after-authentication }
                early: { key: ip, rate: 10/1m }
                keyed: { key: header:X-Key, on-missing-key: deny, rate: 1/1m, paths: /keyed }
                late: { key: query:n, rate: 1/1h, max-keys: 1, paths: /late, rejection-delay: 2s }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    @Test
    void aBeanReplacesTheWholeAnswer() {
        assertThat(server.http().get("/hello").body()).isEqualTo("hello");
        Response refusal = server.http().get("/hello", "Origin: http://page");

        assertThat(refusal.status()).isEqualTo(418);
        assertThat(refusal.body()).isEqualTo("DENIED hello 60000");
        assertThat(refusal.names()).doesNotContain("Retry-After", "X-RetryAfterMs", "RateLimit", "RateLimit-Policy");
        assertThat(refusal.header("Access-Control-Allow-Origin"))
                .as("set before it is asked")
                .isEqualTo("*");
    }

    @Test
    void itGetsTheOutcome() {
        assertThat(server.http().get("/keyed").body()).isEqualTo("MISSING_KEY keyed 0");
    }

    @Test
    void itGetsTheWholeDecisionAlsoAfterADelay() {
        server.http().get("/late?n=1");
        server.http().get("/late?n=2");
        try (Connection refused = server.http().open().write(RawHttp.text("GET", "/late?n=2"))) {
            DelayedRejections late = server.bean(DelayedRejections.class);
            await().until(() -> late.waiting() == 1);
            server.advance(Duration.ofSeconds(2));

            assertThat(refused.read().body()).isEqualTo("DENIED late 3598000 in a bucket that keys share");
        }
    }

    @RestController
    static class Api {

        @CrossOrigin
        @GetMapping({"/hello", "/keyed", "/late"})
        String hello() {
            return "hello";
        }

        @Bean
        RejectionHandler teapot() {
            return (request, response, decision) -> {
                response.setStatus(418);
                response.getWriter().write(text(decision));
            };
        }

        private static String text(Decision decision) {
            Answer violation = decision.denials().get(0);
            return decision.outcome() + " " + violation.policy().name() + " "
                    + decision.retryAfter().toMillis()
                    + (violation.shared() ? " in a bucket that keys share" : "");
        }
    }
}
