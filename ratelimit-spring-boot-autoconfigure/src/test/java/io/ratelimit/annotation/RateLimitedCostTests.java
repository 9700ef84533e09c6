package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.Decision.Outcome;
import io.ratelimit.Throttlers;
import io.ratelimit.key.FailureListener;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The costs of calls of annotated methods, and the reports of costs and keys that fail. */
class RateLimitedCostTests extends AnnotatedCalls {

    static class Costs {

        @RateLimited("export")
        void ofThePolicy() {}

        @RateLimited(policy = "export", cost = "5")
        void number() {}

        @RateLimited(policy = "export", cost = "#rows / 100")
        void expression(long rows) {}

        @RateLimited(policy = "export", cost = "#cost")
        void anything(Object cost) {}
    }

    @Test
    void theCostIsANumberOrAnExpression() {
        runner.withBean(Costs.class).run(context -> {
            Costs costs = context.getBean(Costs.class);
            costs.ofThePolicy();
            assertThat(available(context, "export")).isEqualTo(7);
            costs.number();
            assertThat(available(context, "export")).isEqualTo(2);
            assertDenied(costs::number);
            costs.expression(200);
            assertThat(available(context, "export")).isZero();
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> costs.expression(1100))
                    .withMessage("The call can never be allowed by 'export' policy, it costs more than the limit.");
        });
    }

    @Test
    void aMissingCostAndACostBelowOneCountAsOne() {
        runner.withBean(Costs.class).run(context -> {
            Costs costs = context.getBean(Costs.class);
            costs.expression(0);
            costs.expression(-500);
            costs.anything(null);
            costs.anything("five");
            costs.anything(Double.NaN);
            assertThat(available(context, "export")).isEqualTo(5);
            costs.anything(1.5);
            assertThat(available(context, "export")).isEqualTo(3);
            costs.anything("2");
            assertThat(available(context, "export")).isEqualTo(1);
            assertDenied(() -> costs.anything(1e30));
        });
    }

    @Test
    void aCostIsCutToTheMaximumOfThePolicy() {
        runner.withPropertyValues("ratelimit.policies.export.max-cost=4")
                .withBean(Costs.class)
                .run(context -> {
                    Costs costs = context.getBean(Costs.class);
                    costs.number();
                    costs.expression(100_000);
                    assertThat(available(context, "export")).isEqualTo(2);
                });
    }

    @Test
    void failuresOfKeysAndCostsAreReportedToTheFailureListener() {
        List<String> failures = new ArrayList<>();
        FailureListener listener = (policy, what, why) -> failures.add(policy + ": " + what + ": " + why);
        runner.withBean(FailureListener.class, () -> listener)
                .withBean(Costs.class)
                .withBean(RateLimitedTests.Missing.class)
                .withBean(ConstantKeys.class)
                .run(context -> {
                    assertThat(failures).as("at the start").isEmpty();
                    context.getBean(Costs.class).anything("five");
                    context.getBean(Costs.class).anything(0);
                    context.getBean(RateLimitedTests.Missing.class).call(new RateLimitedTests.Tenant(null));
                    context.getBean(RateLimitedTests.Missing.class).call(null);
                    context.getBean(ConstantKeys.class).call();
                });
        assertThat(failures)
                .map(failure -> failure.replaceAll("[\\w.]+(?=\\$(Costs|Missing))", ""))
                .containsExactly(
                        "export: the cost of @RateLimited on $Costs.anything(Object), which counted as 1:"
                                + " java.lang.NumberFormatException",
                        "export: the cost of @RateLimited on $Costs.anything(Object), which counted as 1: below 1",
                        "search: the key of @RateLimited on $Missing.call(Tenant), so it was missing:"
                                + " org.springframework.expression.spel.SpelEvaluationException"
                                + " PROPERTY_OR_FIELD_NOT_READABLE_ON_NULL");
    }

    static class ConstantKeys {

        @RateLimited(name = "constant-parts", rate = "1/1h", key = "{'a', 'b'}")
        void call() {}
    }

    static class Rows {

        @RateLimited(policy = "export", cost = "#rows * 1000")
        void read(int rows) {}

        @RateLimited(policy = "export", cost = "#width * #height / 1000")
        void draw(int width, int height) {}
    }

    /** The costs would overflow to less than one token with plain integer arithmetic. */
    @Test
    void aCostDoesNotOverflow() {
        runner.withBean(Rows.class).run(context -> {
            Rows rows = context.getBean(Rows.class);
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> rows.read(2_147_484))
                    .satisfies(denied -> assertThat(denied.decision().outcome()).isEqualTo(Outcome.NEVER_FITS));
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(() -> rows.draw(65_536, 65_536));
            rows.draw(100, 50);
            assertThat(context.getBean(Throttlers.class).snapshot("export").available())
                    .isEqualTo(5);
        });
    }
}
