package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.read.ListAppender;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.key.KeyResolver;
import io.ratelimit.key.LimitResolver;
import io.ratelimit.web.servlet.rejection.WaitingRejections;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.springframework.boot.webmvc.autoconfigure.error.ErrorViewResolver;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** No line of our loggers contains text from a client, at any level (G6). */
class LogSecrecyTests {

    private static final String MARK = "m4rk";

    private static final String YAML = """
            server.forward-headers-strategy: none
            ratelimit:
              client-ip.trusted-proxies: 127.0.0.1
              policies:
                strict: { key: [user, endpoint], rate: 1/1h, paths: /items/** }
                watched: { key: [ip, "header:X-Key", "query:q", "cookie:c"], rate: 1/1h, mode: shadow }
                full: { key: ["header:X-Key"], rate: 1/1h, max-keys: 1, mode: shadow }
                deny: { key: [ip, "header:X-Absent"], on-missing-key: deny, rate: 1/1h, mode: shadow }
                dear: { key: ip, rate: 5/1h, cost: "header('X-Key')", mode: shadow }
                picky: { key: ip, rate: 5/1h, condition: "header('X-Key') + 1", mode: shadow }
                failing: { key: "bean:failing", rate: 5/1h, mode: shadow }
                plans: { key: ip, rate: 5/1h, tiers: { pro: { rate: 9/1h } }, tier: "bean:failing", mode: shadow }
                own: { key: ip, rate: 5/1h, limit: "bean:own", mode: shadow }
                late: { key: ip, rate: 1/1h, paths: /late/**, rejection-delay: 1s }
                line: { rate: 1/1h, max-wait: 9h, queue-limit: 1, mode: shadow }
            """;

    private final Logger logger = (Logger) LoggerFactory.getLogger("io.ratelimit");
    private final ListAppender<ILoggingEvent> appender = new ListAppender<>();

    /** Adds the appender after the application has set up its log, which removes earlier appenders. */
    private void listen() {
        appender.start();
        logger.addAppender(appender);
        logger.setLevel(Level.TRACE);
    }

    @AfterEach
    void stop() {
        logger.detachAppender(appender);
        logger.setLevel(null);
    }

    @Test
    void nothingThatAClientSendsIsInOurLog() {
        try (TestServer server =
                TestServer.secured(YAML, BasicSecurity.class, Api.class).start()) {
            listen();
            for (int i = 0; i < 3; i++) {
                request(server, "GET", "/items/" + MARK);
                request(server, MARK.toUpperCase(Locale.ROOT), "/" + MARK + ";" + MARK + "/%6d4rk//..");
                request(server, "GET", "/called/" + MARK);
                server.http().request("GET", "/items/" + MARK, basic("alice" + MARK), "Accept: text/html");
                late(server);
                server.advance(Duration.ofSeconds(10));
            }
        }

        List<String> lines =
                List.copyOf(appender.list).stream().map(LogSecrecyTests::text).toList();
        assertThat(lines).noneMatch(line -> line.toLowerCase(Locale.ROOT).contains(MARK));
        assertThat(Stream.of("strict", "watched", "deny", "called", "late", "line", "full"))
                .allMatch(policy -> lines.stream().anyMatch(line -> line.contains("'" + policy + "' denied ")));
        assertThat(Stream.of("dear", "picky", "failing", "plans", "own", "called"))
                .allMatch(policy ->
                        lines.stream().anyMatch(line -> line.contains("'" + policy + "' could not determine ")));
        assertThat(lines)
                .anyMatch(line -> line.contains("error page for 429 failed")
                        && line.contains("ViewResolutionFailure, caused by java.lang.IllegalStateException"));
    }

    private static void request(TestServer server, String method, String target) {
        server.http().request(method, target + "?q=" + MARK + "&" + MARK, headers());
    }

    private static String[] headers() {
        return new String[] {
            basic("alice" + MARK),
            "X-Key: " + MARK,
            MARK + ": " + MARK,
            "Cookie: c=" + MARK,
            "Origin: " + MARK + "://" + MARK,
            "Accept: " + MARK + "/x",
            "X-Forwarded-For: " + MARK + ", $(" + MARK + ")",
            "Connection: close"
        };
    }

    private static void late(TestServer server) {
        try (RawHttp.Connection connection = server.http().open()) {
            connection.write(RawHttp.text("GET", "/late/" + MARK, headers()));
            Awaitility.await()
                    .until(() -> WaitingRejections.count(server) == 1
                            || server.bean(Api.class).answered());
        }
        server.advance(Duration.ofSeconds(1));
        Awaitility.await().until(() -> WaitingRejections.count(server) == 0);
    }

    private static String text(ILoggingEvent event) {
        String trace = event.getThrowableProxy() == null ? "" : ThrowableProxyUtil.asString(event.getThrowableProxy());
        return event.getLevel() + " " + event.getFormattedMessage() + trace;
    }

    @Configuration(proxyBeanMethods = false)
    @RestController
    static class Api {

        private volatile boolean answered;

        boolean answered() {
            boolean was = answered;
            answered = false;
            return was;
        }

        @GetMapping({"/items/{id}", "/late/{id}"})
        String item(@PathVariable String id) {
            answered = true;
            return "item";
        }

        @RateLimited(
                name = "called",
                rate = "1/1h",
                key = "{#id, #id.substring(9999)}",
                cost = "#id.substring(9999).length()")
        @GetMapping("/called/{id}")
        public String called(@PathVariable String id) {
            return "called";
        }

        @Bean
        ErrorViewResolver pages() {
            return (request, status, model) -> {
                throw new ViewResolutionFailure(new IllegalStateException("no such page: " + request.getRequestURI()));
            };
        }

        private static final class ViewResolutionFailure extends RuntimeException {

            private static final long serialVersionUID = 1;

            ViewResolutionFailure(Throwable cause) {
                super("no page: " + cause.getMessage(), cause);
            }
        }

        @Bean
        LimitResolver own() {
            return request -> {
                throw new IllegalStateException("no such thing: " + request.header("X-Key"));
            };
        }

        @Bean
        KeyResolver failing() {
            return request -> {
                throw new IllegalStateException("no such thing: " + request.header("X-Key"));
            };
        }
    }
}
