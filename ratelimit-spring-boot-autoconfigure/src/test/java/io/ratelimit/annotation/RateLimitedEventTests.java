package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** The events that calls of annotated methods report to listeners. */
class RateLimitedEventTests {

    private final List<String> events = new ArrayList<>();
    private final ThrottleListener listener = new ThrottleListener() {

        @Override
        public void decided(Decision decision) {
            events.add(decision.answers().get(0).policy().name() + " decided");
        }

        @Override
        public void eventOccurred(ThrottlePolicy policy, ThrottleListener.Event event) {
            events.add(policy.name() + " " + event);
        }
    };

    private void calling(Consumer<Service> calls) {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, RateLimitAnnotationAutoConfiguration.class))
                .withBean(ManualTimeSource.class)
                .withBean(ThrottleListener.class, () -> listener)
                .withBean(Service.class)
                .withPropertyValues(
                        "ratelimit.policies.by-id.key=bean:id",
                        "ratelimit.policies.by-id.rate=9/1h",
                        "ratelimit.policies.by-id.applies-to=annotated",
                        "ratelimit.policies.by-id.overrides[0].keys=free",
                        "ratelimit.policies.by-id.overrides[0].mode=off")
                .withBean("id", io.ratelimit.key.KeyResolver.class, () -> request -> null)
                .run(context -> calls.accept(context.getBean(Service.class)));
    }

    @Test
    void aCallWithoutItsKeyReportsOneEventAndIsDecided() {
        calling(service -> {
            service.byId(null);
            service.byId("7");
            service.own(" ");
        });

        assertThat(events)
                .containsExactly(
                        "by-id MISSING_KEY", "by-id decided", "by-id decided", "own MISSING_KEY", "own decided");
    }

    @Test
    void eachCallThatAnOverrideExemptsReportsAnEvent() {
        calling(service -> {
            service.byId("free");
            service.alwaysFree();
            service.alwaysFree();
        });

        assertThat(events).containsExactly("by-id EXEMPT", "by-id EXEMPT", "by-id EXEMPT");
    }

    static class Service {

        @RateLimited(policy = "by-id", key = "#id")
        public void byId(@Nullable String id) {}

        @RateLimited(policy = "by-id", key = "'free'")
        public void alwaysFree() {}

        @RateLimited(name = "own", rate = "9/1h", key = "#id")
        public void own(String id) {}
    }
}
