package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.context.annotation.Bean;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.servlet.HandlerExceptionResolver;

/** The bean of {@code docs/responses.md} that passes rejections on to the application's exception handlers. */
class AdviceRejectionTests {

    private static final String YAML = """
            ratelimit:
              policies:
                early: { key: ip, rate: 1/1m, paths: /early, phase: before-authentication }
                late: { rate: 1/1m, paths: /late, phase: after-authentication }
                method: { rate: 1/1m, applies-to: annotated }
            """;

    @Test
    void theBeanIsTheOneOfThePage() throws IOException {
        String page = Files.readString(Path.of("../docs/responses.md"));
        String source =
                Files.readString(Path.of("src/test/java/io/ratelimit/web/servlet/rejection/AdviceRejectionTests.java"));
        int start = page.indexOf("```java\n@Bean\nRejectionHandler toExceptionHandlers(") + "```java\n".length();
        assertThat(withoutLayout(source)).contains(withoutLayout(page.substring(start, page.indexOf("```", start))));
    }

    private static String withoutLayout(String code) {
        return code.replaceAll("\\s+", "");
    }

    @Test
    void anAdviceAnswersTheRejectionsOfBothFiltersAndOfCalls() {
        try (TestServer server =
                TestServer.open(YAML, Api.class, Handler.class, Advice.class).start()) {
            for (String policy : new String[] {"early", "late", "method"}) {
                assertThat(server.http().get("/" + policy).status()).isEqualTo(200);
                Response rejection = server.http().get("/" + policy);
                assertThat(rejection.status()).isEqualTo(429);
                assertThat(rejection.body()).isEqualTo("{\"error\":\"" + policy + "\"}");
                assertThat(rejection.header("Retry-After")).isEqualTo("60");
            }
        }
    }

    @Test
    void withoutAnAdviceTheDefaultAnswersThem() {
        try (TestServer server = TestServer.open(YAML, Api.class, Handler.class).start()) {
            for (String policy : new String[] {"early", "late", "method"}) {
                server.http().get("/" + policy);
                Response rejection = server.http().get("/" + policy);
                assertThat(rejection.status()).isEqualTo(429);
                assertThat(rejection.body()).contains("\"violated-policies\":[\"" + policy + "\"]");
                assertThat(rejection.header("Retry-After")).isEqualTo("60");
            }
        }
    }

    @RestController
    static class Api {

        @GetMapping({"/early", "/late"})
        String free() {
            return "free";
        }

        @GetMapping("/method")
        @RateLimited("method")
        public String limited() {
            return "limited";
        }
    }

    static class Handler {

        @Bean
        RejectionHandler toExceptionHandlers(
                @Qualifier("handlerExceptionResolver") ObjectProvider<HandlerExceptionResolver> handlers) {
            RejectionHandler problem = new ProblemRejectionHandler(RateLimitHeaders.DRAFT_11, Map.of());
            return (request, response, decision) -> {
                Exception rejection = new RateLimitExceededException(decision);
                if (handlers.getObject().resolveException(request, response, null, rejection) == null) {
                    problem.reject(request, response, decision);
                }
            };
        }
    }

    @RestControllerAdvice
    static class Advice {

        @ExceptionHandler
        ResponseEntity<Map<String, String>> rejected(RateLimitExceededException rejection) {
            return ResponseEntity.status(429)
                    .header("Retry-After", "" + rejection.retryAfter().toSeconds())
                    .body(Map.of("error", rejection.policy()));
        }
    }
}
