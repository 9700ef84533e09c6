package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.micrometer.common.KeyValue;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationFilter;
import io.micrometer.observation.ObservationHandler;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.TestServer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.http.server.observation.ServerRequestObservationContext;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The policy and the outcome in the observations of requests, from which spans are made. */
class RejectionObservationTests {

    private static final String YAML = """
            ratelimit:
              policies:
                one: { rate: 1/1m, paths: /one }
                late: { rate: 1/1m, paths: /late, rejection-delay: 2s }
                keyed: { rate: 9/1m, key: "header:X-Key", on-missing-key: deny, paths: /keyed }
                called: { rate: 1/1m, applies-to: annotated }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, Spans.class);

    private final Spans spans = server.bean(Spans.class);

    @BeforeEach
    void clear() {
        spans.stopped.clear();
    }

    @Test
    void aRejectedRequestNamesItsPolicyAndTheOutcome() {
        server.http().get("/one");
        assertThat(next()).isEmpty();
        server.http().get("/one");
        assertThat(next()).isEqualTo(Map.of("ratelimit.policy", "one", "ratelimit.outcome", "denied"));
        server.http().get("/keyed");
        assertThat(next()).isEqualTo(Map.of("ratelimit.policy", "keyed", "ratelimit.outcome", "missing-key"));
    }

    @Test
    void aRejectedCallNamesItsPolicy() {
        server.http().get("/called");
        next();
        server.http().get("/called");
        assertThat(next()).isEqualTo(Map.of("ratelimit.policy", "called", "ratelimit.outcome", "denied"));
    }

    @Test
    void aDelayedRejectionNamesItsPolicy() {
        server.http().get("/late");
        next();
        Thread client = new Thread(() -> server.http().get("/late"));
        client.start();
        await().untilAsserted(() -> {
            server.advance(Duration.ofSeconds(2));
            assertThat(spans.stopped).isNotEmpty();
        });
        assertThat(next()).isEqualTo(Map.of("ratelimit.policy", "late", "ratelimit.outcome", "denied"));
    }

    @Test
    void theTagsOfTheMeterStayAsTheyAre() {
        server.http().get("/one");
        server.http().get("/one");
        next();
        await().until(() -> server.bean(MeterRegistry.class)
                        .find("http.server.requests")
                        .tag("status", "429")
                        .timer()
                != null);
        assertThat(tags(server))
                .allSatisfy(keys -> assertThat(keys).doesNotContain("ratelimit.policy", "ratelimit.outcome"));
    }

    /** The filter of docs/metrics.md. */
    @Test
    void aFilterOfTheApplicationMakesThemTagsOfEachRequest() {
        try (TestServer tagged = TestServer.open(YAML, Api.class, Tags.class).start()) {
            tagged.http().get("/one");
            tagged.http().get("/one");
            await().until(() -> tags(tagged).size() == 2);
            assertThat(tags(tagged))
                    .allSatisfy(keys -> assertThat(keys).contains("ratelimit.policy", "ratelimit.outcome"));
            assertThat(tagged.bean(MeterRegistry.class)
                            .get("http.server.requests")
                            .tag("ratelimit.policy", "one")
                            .tag("ratelimit.outcome", "denied")
                            .timer()
                            .count())
                    .isEqualTo(1);
        }
    }

    private static List<Set<String>> tags(TestServer server) {
        return server.bean(MeterRegistry.class).find("http.server.requests").timers().stream()
                .map(timer -> timer.getId().getTags().stream().map(Tag::getKey).collect(Collectors.toSet()))
                .toList();
    }

    private Map<String, String> next() {
        await().until(() -> !spans.stopped.isEmpty());
        return spans.stopped.remove(0);
    }

    @RestController
    static class Api {

        @GetMapping({"/one", "/late", "/keyed"})
        String limited() {
            return "limited";
        }

        @GetMapping("/called")
        @RateLimited("called")
        public String called() {
            return "called";
        }
    }

    static class Spans implements ObservationHandler<ServerRequestObservationContext> {

        private final List<Map<String, String>> stopped = new CopyOnWriteArrayList<>();

        @Override
        public void onStop(ServerRequestObservationContext context) {
            stopped.add(context.getAllKeyValues().stream()
                    .filter(value -> value.getKey().startsWith("ratelimit."))
                    .collect(Collectors.toMap(KeyValue::getKey, KeyValue::getValue)));
        }

        @Override
        public boolean supportsContext(Observation.Context context) {
            return context instanceof ServerRequestObservationContext;
        }
    }

    static class Tags {

        @Bean
        ObservationFilter rateLimitTags() {
            return context -> {
                if (context instanceof ServerRequestObservationContext) {
                    for (String name : List.of("ratelimit.policy", "ratelimit.outcome")) {
                        @Nullable KeyValue value = context.getHighCardinalityKeyValue(name);
                        context.addLowCardinalityKeyValue(value == null ? KeyValue.of(name, "none") : value);
                    }
                }
                return context;
            };
        }
    }
}
