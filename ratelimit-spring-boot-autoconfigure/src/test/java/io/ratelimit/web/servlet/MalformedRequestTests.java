package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.Filter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.cors.UrlBasedCorsConfigurationSource;

/** No sequence of bytes fails in the filter or bypasses it. */
@Tag("slow")
class MalformedRequestTests {

    private static final String YAML = """
            server.servlet.context-path: "%s"
            spring.mvc.servlet.path: "%s"
            ratelimit:
              exclude-paths: /excluded/**
              policies:
                all: { rate: 1/1d }
                header: { key: [header:X-Key, ip, method, endpoint], rate: 1000/1d }
                late: { key: user, rate: 1000/1d }
            """;

    @ParameterizedTest
    @CsvSource({"'', /", "/ctx, /app"})
    void isRejectedIfItReachesTheFilter(String context, String servlet) {
        String mounted = context + (servlet.equals("/") ? "" : servlet);
        try (TestServer server =
                TestServer.open(YAML.formatted(context, servlet), Api.class).start()) {
            int refused = 0;
            for (String request : requests(mounted)) {
                for (String each : List.of(request, withOrigin(request))) {
                    server.refill();
                    assertThat(server.http().get(mounted + "/hello").status()).isEqualTo(200);
                    refused += isRefusedOrRejected(server, each) ? 1 : 0;
                    assertThat(server.http().get(mounted + "/hello").status())
                            .as("after %s", each)
                            .isEqualTo(429);
                }
            }
            assertThat(refused).isGreaterThan(50);
        }
    }

    private static boolean isRefusedOrRejected(TestServer server, String request) {
        int before = Api.ENTERED.get();
        try {
            Response answer = server.http().send(request);
            if (Api.ENTERED.get() > before) {
                assertThat(answer.status()).as(request).isEqualTo(429);
                assertThat(answer.header("X-RetryAfterMs")).as(request).isEqualTo("86400000");
            }
        } catch (UncheckedIOException noHead) {
            if (Api.ENTERED.get() > before) { // as HTTP/0.9, which has a body and no more
                assertThat(noHead).as(request).hasMessageContaining("throttled by 'all' policy");
            }
        }
        assertThat(Api.ENTERED.get()).as(request).isLessThanOrEqualTo(before + 1);
        return Api.ENTERED.get() > before;
    }

    private static String withOrigin(String request) {
        return request.replaceFirst("\r\n", "\r\nOrigin: http://page.example\r\n");
    }

    private static List<String> requests(String mounted) {
        List<String> requests = new ArrayList<>();
        for (String target : targets(mounted)) {
            requests.add(RawHttp.text("GET", target));
            requests.add(RawHttp.text("POST", target, "Content-Length: 0"));
        }
        for (String method :
                List.of("get", "F", "G\u00e9T", "FOO/BAR", "X".repeat(5000), "OPTIONS", "TRACE", "CONNECT")) {
            requests.add(RawHttp.text(method, mounted + "/hello"));
        }
        for (String header : headers()) {
            requests.add(RawHttp.text("GET", mounted + "/hello", header));
            requests.add(RawHttp.text("OPTIONS", mounted + "/hello", header));
        }
        requests.addAll(List.of(
                "GET " + mounted + "/hello HTTP/1.1\r\n\r\n",
                "GET " + mounted + "/hello HTTP/1.0\r\n\r\n",
                "GET " + mounted + "/hello HTTP/1.1\r\nHost:\r\n\r\n",
                "GET " + mounted + "/hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                "GET " + mounted + "/hello HTTP/1.1\r\nHost: [::1\r\n\r\n",
                "GET " + mounted + "/hello HTTP/1.1\nHost: localhost\n\n",
                "GET " + mounted + "/hello HTTP/3.0\r\nHost: localhost\r\n\r\n",
                "GET " + mounted + "/hello\r\n\r\n",
                "\r\n\r\nGET " + mounted + "/hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                "\u0000\u0001\u0002\r\n\r\n"));
        return requests;
    }

    private static List<String> targets(String mounted) {
        List<String> targets = new ArrayList<>(List.of(
                "http://localhost" + mounted + "/hello",
                "http://other:99" + mounted + "/hello",
                "HTTP://localhost" + mounted + "/hello",
                "https://u:p@localhost" + mounted + "/hello",
                "http://localhost",
                "http://localhost?x",
                "http:" + mounted + "/hello",
                "localhost",
                "/",
                "//",
                "/..",
                "/" + mounted + "/..",
                mounted.replace("app", "%61pp") + "/..",
                mounted.replace("app", "%61pp") + "/hello",
                mounted.replace("ctx", "%63tx") + "/hello",
                mounted + ";",
                mounted + "/excluded/../hello",
                mounted + "/excluded/..;/hello",
                mounted + "/;/excluded/x/../../hello"));
        for (String path : List.of(
                "",
                "/",
                "/;",
                "/hello%zz",
                "/%",
                "/%4",
                "/hello%00",
                "/\u0000",
                "/%ff",
                "/%c0%af",
                "/%u0041",
                "/%25zz",
                "/hello%0d%0ax",
                "/\\hello",
                "/%5chello",
                "/%2fhello",
                "/hello#x",
                "/hello?%zz",
                "/hello?a=%ff&&=&b",
                "/hello?",
                "/{x}",
                "/<x>",
                "/h\u00e4llo",
                "/h\u00c3\u00a4llo",
                "/hello\t",
                "/he llo",
                "/hello;a=%zz",
                "/hello;=;==,",
                "/" + "a/".repeat(2000),
                "/" + "%2e/".repeat(300),
                "/hello;" + "x".repeat(5000))) {
            targets.add(mounted + path);
        }
        return targets;
    }

    private static List<String> headers() {
        return List.of(
                "X-Key: " + "x".repeat(20_000),
                "X-Key: " + "x".repeat(7_000),
                "X-Key: \u00ff\u0080\u00e4",
                "X-Key: a\u0000b",
                "X-Key: a\u0001b",
                "X-Key: a\r\n b",
                "X Key: a",
                "X-Key : a",
                "X-Key",
                ": a",
                "X-Key: a\rX-Key: b",
                "Accept:",
                "Accept: \u00ff/\u00e4;q=\u00fc",
                "Accept: text/plain;q=0.5;q;=;;",
                "Origin:",
                "Origin: null",
                "Origin: http://localhost:{x}",
                "Origin: http://[",
                "Origin: \u00ff",
                "Origin: null\r\nAccess-Control-Request-Method;: x",
                "Content-Length: -1",
                "Content-Length: abc",
                "Content-Length: 99999999999999999999",
                "Content-Length: 0\r\nTransfer-Encoding: chunked",
                "Content-Length: 0\r\nContent-Length: 1",
                "Transfer-Encoding: gzip",
                "Expect: 100-continue",
                "Expect: nonsense",
                "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAA",
                "Cookie: ;;;=;\u00ff",
                "Content-Type: \u00ff/;;charset=nonsense",
                "Authorization: Basic %%%",
                "X-Forwarded-For: \u00ff",
                "Forwarded: for=\"",
                "X-Forwarded-Prefix: /x",
                "X-HTTP-Method-Override: OPTIONS",
                "Range: bytes=a-b",
                "If-None-Match: *");
    }

    @RestController
    static class Api {

        static final AtomicInteger ENTERED = new AtomicInteger();

        @CrossOrigin("http://page.example")
        @RequestMapping("/hello")
        String hello() {
            return "hello";
        }

        @Bean
        FilterRegistrationBean<Filter> entered() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                ENTERED.incrementAndGet();
                chain.doFilter(request, response);
            });
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            return registration;
        }

        @Bean
        CorsConfigurationSource corsConfigurationSource() {
            CorsConfiguration configuration = new CorsConfiguration();
            configuration.setAllowedOrigins(List.of("http://page.example"));
            UrlBasedCorsConfigurationSource source = new UrlBasedCorsConfigurationSource();
            source.registerCorsConfiguration("/**", configuration);
            return source;
        }
    }
}
