package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottleListener;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** Policies in shadow mode: they decide and are reported, and no response shows them. */
class ShadowTests {

    private static final String ENFORCED = """
            ratelimit:
              policies:
                per-user: { key: user, rate: 3/1h, paths: /items/** }
                early: { key: ip, rate: 4/1h, paths: [/items/**, /early/**] }
            """;

    private static final String CANDIDATES = """
                candidate: { key: user, rate: 1/1h, paths: /items/**, mode: shadow, status: 503, rejection-delay: 5s }
                whole: { rate: 1/1h, cost: 1, capacity: 2, paths: /items/**, mode: shadow, retry-jitter: 1ms-9ms }
                keyed: { key: [user, "header:X-Key"], on-missing-key: deny, rate: 1/1h, mode: shadow }
                line: { rate: 1/1h, max-wait: 5h, queue-limit: 1, mode: shadow }
                dear: { key: ip, rate: 5/1h, cost: "header('X-Cost')", mode: shadow }
                guard: { key: ip, rate: 1/1h, phase: before-authentication, mode: shadow, refund-on: 2xx }
            """;

    @Test
    void everyResponseIsIdenticalToThatWithoutShadowPolicies() {
        List<Response> without;
        try (TestServer server =
                TestServer.secured(ENFORCED, BasicSecurity.class, Api.class).start()) {
            without = answers(server.http());
        }
        try (TestServer server = TestServer.secured(ENFORCED + CANDIDATES, BasicSecurity.class, Api.class)
                .start()) {
            assertThat(answers(server.http())).isEqualTo(without);
            assertThat(server.bean(Told.class).denials)
                    .contains("candidate DENIED", "whole DENIED", "keyed MISSING_KEY", "line QUEUE_FULL")
                    .contains("dear NEVER_FITS", "guard DENIED", "per-user DENIED", "early DENIED");
        }
        assertThat(without).extracting(Response::status).contains(200, 401, 404, 429);
    }

    private static List<Response> answers(RawHttp http) {
        List<Response> answers = new ArrayList<>();
        for (String path : List.of("/items/1", "/items/404", "/items/1", "/items/1", "/items/1", "/nowhere")) {
            answers.add(http.get(path, basic("alice"), "X-Cost: 9"));
            answers.add(http.from("127.0.0.7").get(path, basic("alice", "guess")));
            answers.add(http.from("127.0.0.9").request("HEAD", path, basic("bob"), "Connection: close"));
        }
        return answers.stream().map(ShadowTests::withoutWhatIsNeverTheSame).toList();
    }

    private static Response withoutWhatIsNeverTheSame(Response answer) {
        List<Map.Entry<String, String>> headers = answer.headers().stream()
                .filter(header -> !header.getKey().equals("Date"))
                .map(header -> Map.entry(
                        header.getKey(), header.getValue().replaceFirst("JSESSIONID=\\w+", "JSESSIONID=random")))
                .toList();
        return new Response(answer.status(), headers, answer.body());
    }

    @Test
    void shadowPoliciesGiveBackLikeEnforcedOnes() {
        String yaml = """
                ratelimit:
                  policies:
                    tight: { key: user, rate: 1/1h, paths: /items/** }
                    early: { key: ip, rate: 9/1h, mode: shadow }
                    keeping: { key: ip, rate: 9/1h, phase: before-authentication, mode: shadow }
                    failures: { key: user, rate: 9/1h, refund-on: "!404", mode: shadow }
                """;
        try (TestServer server =
                TestServer.secured(yaml, BasicSecurity.class, Api.class).start()) {
            server.http().get("/items/1", basic("alice"));
            assertThat(server.available("early", "127.0.0.1")).isEqualTo(8);
            assertThat(server.available("failures", "alice"))
                    .as("the answer was 200")
                    .isEqualTo(9);

            assertThat(server.http().get("/items/1", basic("alice")).status()).isEqualTo(429);
            assertThat(server.available("early", "127.0.0.1"))
                    .as("a late policy refused")
                    .isEqualTo(8);
            assertThat(server.available("keeping", "127.0.0.1"))
                    .as("but this one pays for the login")
                    .isEqualTo(7);

            server.http().get("/404", basic("alice"));
            assertThat(server.available("failures", "alice")).isEqualTo(8);
        }
    }

    /** The mode of the application disables each way in which a policy can affect a request, and nothing else. */
    @Test
    void aWholeApplicationIsWatched() {
        String yaml = """
                ratelimit:
                  mode: shadow
                  policies:
                    costly: { key: user, rate: 5/1h, cost: 3, paths: /items/** }
                    plans:
                      key: user
                      rate: 1/1h
                      tiers: { user: { rate: 2/1h } }
                      tier: role
                      paths: /items/**
                    exceptions:
                      key: user
                      rate: 1/1h
                      paths: /items/**
                      overrides: [{ keys: [alice], rate: 3/1h }, { keys: [carol], mode: off }]
                    waiting: { rate: 1/1h, max-wait: 1h, queue-limit: 1, paths: /items/** }
                    calls: { key: user, rate: 1/1h, applies-to: annotated }
                    returned: { key: user, rate: 1/1h, refund-on: 4xx, paths: /items/404 }
                """;
        try (TestServer server = TestServer.secured(yaml, BasicSecurity.class, Api.class, Called.class)
                .start()) {
            for (int i = 0; i < 4; i++) {
                assertThat(server.http().get("/items/1", basic("alice")).status())
                        .isEqualTo(200);
            }
            assertThat(server.bean(Told.class).denials)
                    .containsExactlyInAnyOrder(
                            "costly DENIED",
                            "costly DENIED",
                            "costly DENIED",
                            "plans DENIED",
                            "plans DENIED",
                            "exceptions DENIED",
                            "waiting TOO_LONG",
                            "waiting TOO_LONG");
            server.bean(Told.class).denials.clear();

            server.http().get("/items/404", basic("carol"));
            server.http().get("/items/404", basic("carol"));
            assertThat(server.bean(Told.class).denials)
                    .as("carol has an override, and what was not found costs nothing")
                    .noneMatch(denial -> denial.startsWith("exceptions") || denial.startsWith("returned"));

            server.http().get("/called", basic("alice"));
            assertThat(server.http().get("/called", basic("alice")).body()).isEqualTo("called");
            assertThat(server.bean(Told.class).denials).contains("calls DENIED", "own DENIED");
        }
    }

    /** The enforced policy allows requests that the stricter candidate would deny. Only these are charged to the candidate. */
    @Test
    void aPolicyRunsBesideItsStricterCandidate() {
        String yaml = """
                ratelimit:
                  policies:
                    per-user: { key: user, rate: 4/1h }
                    per-user-strict: { key: user, rate: 2/1h, mode: shadow }
                """;
        try (TestServer server =
                TestServer.secured(yaml, BasicSecurity.class, Api.class).start()) {
            for (int i = 0; i < 6; i++) {
                assertThat(server.http().get("/items/1", basic("alice")).status())
                        .isEqualTo(i < 4 ? 200 : 429);
            }
            assertThat(server.bean(Told.class).denials)
                    .containsExactly(
                            "per-user-strict DENIED", "per-user-strict DENIED", "per-user DENIED", "per-user DENIED");
            server.advance(Duration.ofMinutes(30));
            assertThat(server.available("per-user-strict", "alice")).isEqualTo(1);
        }
    }

    static final class Told implements ThrottleListener {

        private final List<String> denials = Collections.synchronizedList(new ArrayList<>());

        @Override
        public void decided(Decision decision) {
            decision.denials().forEach(violation -> {
                Outcome outcome = violation.outcome();
                denials.add(violation.policy().name() + " " + outcome);
            });
        }
    }

    @Configuration(proxyBeanMethods = false)
    @RestController
    static class Api {

        @GetMapping({"/items/{id}", "/{id}"})
        ResponseEntity<String> item(@PathVariable String id) {
            return id.equals("404") ? ResponseEntity.notFound().build() : ResponseEntity.ok("item");
        }

        @Bean
        Told told() {
            return new Told();
        }
    }

    @RestController
    static class Called {

        @GetMapping("/called")
        @RateLimited("calls")
        @RateLimited(name = "own", rate = "1/1h")
        public String call() {
            return "called";
        }
    }
}
