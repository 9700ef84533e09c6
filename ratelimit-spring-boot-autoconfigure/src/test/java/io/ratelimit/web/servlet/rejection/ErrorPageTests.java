package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webmvc.autoconfigure.error.ErrorViewResolver;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.View;

/** The pages that browsers get when their requests are rejected. */
@ExtendWith(OutputCaptureExtension.class)
class ErrorPageTests {

    private static final String ACCEPT = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    private static final String YAML = """
            ratelimit:
              policies:
                one: { rate: 1/1m, paths: /one }
                closed: { rate: 1/1m, paths: /closed, status: 503 }
                odd: { rate: 1/1m, paths: /odd, status: 420 }
                never: { rate: 1/1m, cost: path.length(), paths: /never }
            """;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource({"429.html, true", "4xx.html, true", "404.html, false"})
    void theApplicationsOwnPageForTheStatusIsUsed(String file, boolean used) throws IOException {
        Files.writeString(Files.createDirectory(directory.resolve("error")).resolve(file), "<p>busy</p>");
        try (TestServer server = server("spring.web.resources.static-locations: file:" + directory + "/")) {
            Response rejection = rejected(server, "/one");
            assertThat(rejection.status()).isEqualTo(429);
            assertThat(rejection.header("Content-Type")).startsWith("text/html");
            assertThat(rejection.header("Retry-After")).isEqualTo("60");
            assertThat(rejection.header("Cache-Control")).isEqualTo("no-store");
            assertThat(rejection.body().contains("<p>busy</p>")).isEqualTo(used);
            assertThat(rejected(server, "/closed").body()).contains("<h1>Service Unavailable</h1>");
            assertThat(rejected(server, "/odd").body()).contains("<h1>Request Rejected</h1>");
        }
    }

    @Test
    void aViewHasThePoliciesAndTheRetryTime() {
        try (TestServer server = server("", Views.class)) {
            assertThat(rejected(server, "/one").body())
                    .contains("error=Too Many Requests")
                    .contains("message=The request is throttled by 'one' policy, please retry after 60000 ms.")
                    .contains("path=/one")
                    .contains("retryAfterMs=60000")
                    .contains("status=429")
                    .contains("violatedPolicies=[one]");
        }
    }

    @Test
    void aRejectionThatTimeCantMendHasNoRetryTime() {
        try (TestServer server = server("")) {
            assertThat(server.http().get("/never", ACCEPT).body())
                    .contains("<h1>")
                    .doesNotContain("try again in");
        }
    }

    @Test
    void aPageThatFailsIsReportedOnceAndReplaced(CapturedOutput output) {
        try (TestServer server = server("", Failing.class)) {
            for (int i = 0; i < 3; i++) {
                Response rejection = rejected(server, "/one");
                assertThat(rejection.status()).isEqualTo(429);
                assertThat(rejection.body()).startsWith("<!DOCTYPE html>").doesNotContain("half");
            }
        }
        assertThat(output.getOut().split("error page for 429 failed", -1)).hasSize(2);
    }

    @Test
    void aPageThatOverflowsTheStackIsReplaced() {
        try (TestServer server = server("", Endless.class)) {
            Response rejection = rejected(server, "/one");
            assertThat(rejection.status()).isEqualTo(429);
            assertThat(rejection.body()).startsWith("<!DOCTYPE html>");
        }
    }

    private static TestServer server(String yaml, Class<?>... more) {
        Class<?>[] sources = new Class<?>[more.length + 1];
        sources[0] = Api.class;
        System.arraycopy(more, 0, sources, 1, more.length);
        return TestServer.open(YAML + yaml, sources).start();
    }

    private static Response rejected(TestServer server, String path) {
        server.http().get(path);
        return server.http().get(path, ACCEPT);
    }

    @RestController
    static class Api {

        @GetMapping({"/one", "/closed", "/odd", "/never"})
        String limited() {
            return "limited";
        }
    }

    static class Views {

        @Bean
        ErrorViewResolver pages() {
            return (request, status, model) -> new ModelAndView("busy", Map.copyOf(model));
        }

        @Bean
        View busy() {
            return new View() {
                @Override
                public String getContentType() {
                    return "text/html";
                }

                @Override
                public void render(
                        @Nullable Map<String, ?> model, HttpServletRequest request, HttpServletResponse response)
                        throws IOException {
                    response.getWriter().print(new TreeMap<>(model));
                }
            };
        }
    }

    static class Endless {

        @Bean
        ErrorViewResolver pages() {
            return (request, status, model) -> {
                throw new StackOverflowError();
            };
        }
    }

    static class Failing {

        @Bean
        ErrorViewResolver pages() {
            return (request, status, model) -> new ModelAndView((views, request2, response) -> {
                response.getOutputStream().print("half");
                throw new IllegalStateException("the template is broken");
            });
        }
    }
}
