package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.autoconfigure.RateLimitReportAutoConfiguration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Calls that a condition frees. */
@ExtendWith(OutputCaptureExtension.class)
class RateLimitedConditionTests extends AnnotatedCalls {

    @ParameterizedTest
    @CsvSource({
        // rows, tokens that the call takes
        "100, 0",
        "101, 3",
    })
    void aCallIsFreeIfTheConditionIsFalse(Integer rows, long tokens) {
        runner.withBean(Conditions.class).run(context -> {
            context.getBean(Conditions.class).export(rows);
            assertThat(available(context, "export")).isEqualTo(10 - tokens);
        });
    }

    @Test
    void aConditionThatIsNoBooleanAppliesAndIsLogged(CapturedOutput output) {
        ApplicationContextRunner reporting =
                runner.withConfiguration(AutoConfigurations.of(RateLimitReportAutoConfiguration.class));
        reporting.withBean(Conditions.class).run(context -> {
            context.getBean(Conditions.class).named("yes");
            assertThat(available(context, "export")).isEqualTo(7);
            context.getBean(Conditions.class).named(null);
            assertThat(available(context, "export")).isEqualTo(4);
            context.getBean(Conditions.class).failing(null);
            assertThat(available(context, "export")).isEqualTo(1);
        });
        assertThat(output)
                .contains("Conditions.export(Integer), if #rows > 100")
                .contains("the condition of @RateLimited on ")
                .contains("so the limit applied");
    }

    @Test
    void aCallIsMadeIfItsConditionFreesItFromAnEmptyBucket() {
        runner.withBean(Conditions.class).run(context -> {
            Conditions conditions = context.getBean(Conditions.class);
            for (int i = 0; i < 3; i++) {
                conditions.export(101);
            }
            assertDenied(() -> conditions.export(101));
            conditions.export(100);
        });
    }

    @Test
    void aConstantMayComeFromAProperty() {
        for (boolean on : new boolean[] {true, false}) {
            runner.withPropertyValues("limits.on=" + on)
                    .withBean(Conditions.class)
                    .run(context -> {
                        context.getBean(Conditions.class).switched();
                        assertThat(available(context, "export")).isEqualTo(on ? 7 : 10);
                    });
        }
    }

    @Test
    void eachAnnotationHasItsOwnConditionAndTheFallbackOfTheOneThatApplies() {
        runner.withBean(Conditions.class).run(context -> {
            Conditions conditions = context.getBean(Conditions.class);
            assertThat(conditions.sized(true)).isEqualTo("made");
            assertThat(available(context, "export")).as("cost 10").isZero();

            assertThat(conditions.sized(true)).isEqualTo("too big");
            assertThat(conditions.sized(false)).isEqualTo("too many");
        });
    }

    @Test
    void aFreeCallIsNotSettled() {
        runner.withBean(Conditions.class).run(context -> {
            Conditions conditions = context.getBean(Conditions.class);
            conditions.settled(0);
            assertThat(available(context, "export")).isEqualTo(10);
            conditions.settled(5);
            assertThat(available(context, "export")).isEqualTo(5);
        });
    }

    static class Conditions {

        @RateLimited(policy = "export", condition = "#rows > 100")
        public void export(Integer rows) {}

        @RateLimited(policy = "export", condition = "#name")
        public void named(String name) {}

        @RateLimited(policy = "export", condition = "#name.isBlank()")
        public void failing(String name) {}

        @RateLimited(policy = "export", condition = "${limits.on:true}")
        public void switched() {}

        @RateLimited(policy = "export", cost = "10", condition = "#big", fallback = "tooBig")
        @RateLimited(policy = "export", condition = "!#big", fallback = "tooMany")
        public String sized(boolean big) {
            return "made";
        }

        String tooBig(boolean big) {
            return "too big";
        }

        String tooMany(boolean big) {
            return "too many";
        }

        @RateLimited(policy = "export", condition = "#size > 0", settle = "#result")
        public int settled(int size) {
            return size;
        }
    }
}
