package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.OncePerRequestFilter;
import org.springframework.web.filter.ShallowEtagHeaderFilter;
import org.springframework.web.util.ContentCachingResponseWrapper;

/** Delayed rejections of calls behind filters that buffer the response until the request returns through them. */
class DelayedRejectionWrapperTests {

    private static final String YAML = """
            ratelimit.policies:
              work: { rate: 1/1h, applies-to: annotated, rejection-delay: 2s }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, Filters.class);

    @ParameterizedTest
    @ValueSource(strings = {"/plain", "/etag", "/logged"})
    void theAnswerArrives(String path) {
        assertThat(server.http().get(path).body()).isEqualTo("done");
        try (Connection refused = server.http().open()) {
            refused.write(RawHttp.text("GET", path));
            await().until(() -> server.bean(DelayedRejections.class).waiting() == 1);
            server.advance(Duration.ofSeconds(2));
            Response refusal = refused.read();
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(refusal.body()).endsWith("\"retryAfterMs\":3598000}");
        }
    }

    @RestController
    static class Api {

        @GetMapping({"/plain", "/etag", "/logged"})
        @RateLimited("work")
        String work() {
            return "done";
        }
    }

    static class Filters {

        @Bean
        FilterRegistrationBean<ShallowEtagHeaderFilter> etag() {
            FilterRegistrationBean<ShallowEtagHeaderFilter> filter =
                    new FilterRegistrationBean<>(new ShallowEtagHeaderFilter());
            filter.addUrlPatterns("/etag");
            return filter;
        }

        /** A typical filter that logs responses. */
        @Bean
        FilterRegistrationBean<OncePerRequestFilter> logging() {
            FilterRegistrationBean<OncePerRequestFilter> filter = new FilterRegistrationBean<>(new Keeping());
            filter.addUrlPatterns("/logged");
            return filter;
        }
    }

    static class Keeping extends OncePerRequestFilter {

        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            ContentCachingResponseWrapper kept = new ContentCachingResponseWrapper(response);
            try {
                chain.doFilter(request, kept);
            } finally {
                kept.copyBodyToResponse();
            }
        }
    }
}
