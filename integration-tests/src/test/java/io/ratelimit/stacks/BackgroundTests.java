package io.ratelimit.stacks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BucketSpec;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Rate;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.migration.RunningApplication;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.context.environment.EnvironmentChangeEvent;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.Environment;
import org.springframework.core.env.MapPropertySource;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;

/** The rows of {@code docs/stacks.md} about work without a request, and about configuration that changes. */
@Tag("slow")
class BackgroundTests {

    private static final String POLICY = "ratelimit.policies.calls: { rate: 2/1h, applies-to: annotated }";

    @AutoClose
    private static RunningApplication application;

    @BeforeAll
    static void start() {
        application = RunningApplication.start(Application.class, POLICY);
    }

    @BeforeEach
    void reset() {
        application.bean(Throttlers.class).reset("calls");
        application.bean(Listeners.class).heard().set(0);
    }

    @Test
    void aDeniedRunOfAScheduledMethodIsSkippedAndTheNextOneComes() {
        try (RunningApplication application = RunningApplication.start(Scheduling.class, POLICY)) {
            Jobs jobs = application.bean(Jobs.class);

            Awaitility.await().until(() -> jobs.denied().get() >= 2);
            assertThat(jobs.runs()).hasValue(2);

            application.time().advance(Duration.ofMinutes(30));
            Awaitility.await().until(() -> jobs.runs().get() == 3);
        }
    }

    @Test
    void aListenerWaitsForItsTokens() {
        Listeners listeners = application.bean(Listeners.class);
        application.publish("first");
        application.publish("second");

        CompletableFuture<Void> third = CompletableFuture.runAsync(() -> application.publish("third"));
        Awaitility.await().until(() -> application.time().waiting() == 1);
        assertThat(listeners.heard()).hasValue(2);

        application.time().advance(Duration.ofMinutes(30));
        third.join();
        assertThat(listeners.heard()).hasValue(3);
    }

    @Test
    void aDeniedListenerThrowsToThePublisher() {
        application.publish(1);
        application.publish(2);

        assertThatThrownBy(() -> application.publish(3))
                .isInstanceOfSatisfying(RateLimitExceededException.class, denied -> assertThat(denied.retryAfter())
                        .isEqualTo(Duration.ofMinutes(30)));
    }

    @Test
    void anAsynchronousCallFailsItsFuture() {
        Listeners listeners = application.bean(Listeners.class);
        assertThat(listeners.later().join()).isEqualTo("done");
        assertThat(listeners.later().join()).isEqualTo("done");

        assertThatThrownBy(() -> listeners.later().join())
                .isInstanceOf(CompletionException.class)
                .hasCauseInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void aRefreshChangesALimitOnlyByCode() {
        change(application, "30/1h");
        assertThat(spec(application)).isEqualTo(BucketSpec.of("2/1h"));
        try (RunningApplication application = RunningApplication.start(Refreshing.class, POLICY)) {
            change(application, "30/1h");
            assertThat(spec(application)).isEqualTo(BucketSpec.of("30/1h"));
        }
    }

    private static void change(RunningApplication application, String rate) {
        Map<String, Object> changed = Map.of("ratelimit.policies.calls.rate", rate);
        application
                .bean(ConfigurableEnvironment.class)
                .getPropertySources()
                .addFirst(new MapPropertySource("changed", changed));
        application.publish(new EnvironmentChangeEvent(changed.keySet()));
    }

    private static BucketSpec spec(RunningApplication application) {
        return application.bean(Throttlers.class).get("calls").policy().spec();
    }

    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableAsync
    @Import(Listeners.class)
    static class Application {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }
    }

    static class Listeners {

        private final AtomicInteger heard = new AtomicInteger();

        AtomicInteger heard() {
            return heard;
        }

        @EventListener
        @RateLimited(policy = "calls", maxWait = "1h")
        public void on(String event) {
            heard.incrementAndGet();
        }

        @EventListener
        @RateLimited("calls")
        public void on(Integer event) {}

        @Async
        @RateLimited("calls")
        public CompletableFuture<String> later() {
            return CompletableFuture.completedFuture("done");
        }
    }

    @Import({Application.class, Jobs.class})
    @EnableScheduling
    static class Scheduling {

        @Bean
        ThrottleListener denials(Jobs jobs) {
            return decision -> jobs.denied().addAndGet(decision.allowed() ? 0 : 1);
        }
    }

    static class Jobs {

        private final AtomicInteger runs = new AtomicInteger();
        private final AtomicInteger denied = new AtomicInteger();

        AtomicInteger runs() {
            return runs;
        }

        AtomicInteger denied() {
            return denied;
        }

        @Scheduled(fixedDelay = 10)
        @RateLimited("calls")
        public void run() {
            runs.incrementAndGet();
        }
    }

    @Import({Application.class, Refresh.class})
    static class Refreshing {}

    record Refresh(Throttlers throttlers, Environment environment) {

        @EventListener
        void refresh(EnvironmentChangeEvent changed) {
            if (changed.getKeys().contains("ratelimit.policies.calls.rate")) {
                Rate rate = environment.getRequiredProperty("ratelimit.policies.calls.rate", Rate.class);
                throttlers.get("calls").reconfigure(spec -> spec.withRate(rate));
            }
        }
    }
}
