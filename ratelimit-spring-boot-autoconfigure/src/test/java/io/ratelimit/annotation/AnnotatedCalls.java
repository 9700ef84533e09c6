package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;

/** The base of tests that call annotated methods: an application with two policies for them. */
abstract class AnnotatedCalls {

    final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    RateLimitAutoConfiguration.class,
                    RateLimitAnnotationAutoConfiguration.class,
                    AopAutoConfiguration.class))
            .withBean(ManualTimeSource.class)
            .withPropertyValues(
                    "ratelimit.policies.search.rate=2/1h",
                    "ratelimit.policies.search.applies-to=annotated",
                    "ratelimit.policies.export.rate=10/1h",
                    "ratelimit.policies.export.cost=3",
                    "ratelimit.policies.export.applies-to=annotated");

    static class Searches {

        int made;

        @RateLimited("search")
        public int search() {
            return ++made;
        }

        public int all(int count) {
            for (int i = 0; i < count; i++) {
                search();
            }
            return made;
        }
    }

    static long available(ConfigurableApplicationContext context, String policy, String... key) {
        return context.getBean(Throttlers.class).snapshot(policy, key).available();
    }

    static void assertDenied(Runnable call) {
        assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(call::run);
    }

    static boolean isAllowed(Runnable call) {
        try {
            call.run();
            return true;
        } catch (RateLimitExceededException denied) {
            return false;
        }
    }
}
