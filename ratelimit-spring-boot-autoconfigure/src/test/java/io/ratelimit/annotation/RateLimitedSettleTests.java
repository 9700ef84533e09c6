package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import reactor.core.publisher.Mono;

/** Calls of annotated methods that are settled at their actual cost. The policy {@code export} takes 3 of 10 tokens. */
class RateLimitedSettleTests extends AnnotatedCalls {

    static class Costs {

        @RateLimited(policy = "export", settle = "#result")
        public Object result(Object result) {
            if (result instanceof RuntimeException failure) {
                throw failure;
            }
            return result;
        }

        @RateLimited(policy = "export", settle = "#result / #parts")
        public long expression(long result, long parts) {
            return result;
        }

        @RateLimited(policy = "export", settle = "#result", fallback = "free")
        @RateLimited(policy = "search", settle = "#result - 1")
        public long both(long result) {
            return result;
        }

        long free(long result) {
            return 0;
        }

        @RateLimited(policy = "export", settle = "#result.length()")
        public CompletableFuture<String> future(CompletableFuture<String> future) {
            return future;
        }

        @RateLimited(policy = "export", settle = "#result.length()")
        public Mono<String> mono(Mono<String> mono) {
            return mono;
        }
    }

    private void run(Consumer<Costs> calls, long left, String... properties) {
        runner.withPropertyValues(properties).withBean(Costs.class).run(context -> {
            calls.accept(context.getBean(Costs.class));
            assertThat(left(context)).isEqualTo(left);
        });
    }

    private static long left(ConfigurableApplicationContext context) {
        return available(context, "export");
    }

    @Test
    void theResultReplacesTheEstimate() {
        run(costs -> costs.result(1), 9);
        run(costs -> costs.result("0"), 10);
        run(costs -> costs.expression(9, 2), 6);
        run(costs -> costs.result(25), 0);
    }

    @Test
    void theEstimateStandsIfThereIsNoUsableResult() {
        run(costs -> costs.result(null), 7);
        run(costs -> costs.result("many"), 7);
        run(costs -> costs.result(-1), 7);
        run(costs -> costs.expression(9, 0), 7);
        run(costs -> assertThatIllegalStateException().isThrownBy(() -> costs.result(new IllegalStateException())), 7);
    }

    @Test
    void theMaximumOfThePolicyHolds() {
        run(costs -> costs.result(9), 6, "ratelimit.policies.export.max-cost=4");
    }

    @Test
    void eachPolicyIsSettledByItsOwnExpressionAndAFallbackIsNot() {
        runner.withBean(Costs.class).run(context -> {
            Costs costs = context.getBean(Costs.class);
            assertThat(costs.both(2)).isEqualTo(2);
            assertThat(left(context)).isEqualTo(8);
            assertThat(available(context, "search")).isEqualTo(1);
            costs.result(14);
            assertThat(costs.both(1)).isZero();
            assertThat(left(context)).isZero();
            assertThat(available(context, "search")).isEqualTo(1);
        });
    }

    @Test
    void aFutureIsSettledWhenItCompletes() {
        runner.withBean(Costs.class).run(context -> {
            Costs costs = context.getBean(Costs.class);
            CompletableFuture<String> future = new CompletableFuture<>();
            assertThat(costs.future(future)).isSameAs(future);
            assertThat(left(context)).isEqualTo(7);
            future.complete("1");
            assertThat(left(context)).isEqualTo(9);
            costs.future(CompletableFuture.failedFuture(new IllegalStateException()));
            assertThat(left(context)).isEqualTo(6);
        });
    }

    @Test
    void aMonoIsSettledOnceWhenItsValueComes() {
        runner.withBean(Costs.class).run(context -> {
            Mono<String> mono = context.getBean(Costs.class).mono(Mono.just("1"));
            assertThat(left(context)).isEqualTo(7);
            mono.block();
            mono.block();
            assertThat(left(context)).isEqualTo(9);
            context.getBean(Costs.class).mono(Mono.empty()).block();
            assertThat(left(context)).isEqualTo(6);
        });
    }
}
