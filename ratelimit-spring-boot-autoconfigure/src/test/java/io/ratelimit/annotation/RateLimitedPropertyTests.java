package io.ratelimit.annotation;

import static io.ratelimit.annotation.RateLimitedFailureTests.assertStopsTheStart;
import static io.ratelimit.annotation.RateLimitedFailureTests.messages;
import static io.ratelimit.annotation.RateLimitedFailureTests.runner;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.http.HttpEntity;
import reactor.core.publisher.Mono;

/** Properties in expressions, of types that certainly don't have them and of types that might. */
class RateLimitedPropertyTests {

    record Usage(long totalTokens) {}

    record Answer(Usage usage, int[] counts, List<Usage> parts, Map<String, String> headers, Object other) {}

    enum Plan {
        FREE
    }

    static class Entity {
        public final long version = 1;

        public long getId() {
            return 1;
        }
    }

    static class Tenant extends Entity {
        public Plan getPlan() {
            return Plan.FREE;
        }

        public boolean isActive() {
            return true;
        }

        String name() {
            return "";
        }
    }

    abstract static class Shape {}

    interface Named {}

    static sealed class Account permits Paid {}

    static final class Paid extends Account {
        public long getPrice() {
            return 1;
        }
    }

    static Stream<Arguments> missing() {
        return Stream.of(
                Arguments.of(
                        OfTenant.class,
                        "has an invalid key '#tenant.idd': " + name(Tenant.class)
                                + " has no property 'idd': did you mean 'id'?"),
                Arguments.of(
                        NoAccess.class,
                        name(Tenant.class) + " has no property 'name', only: active, id, plan, version"),
                Arguments.of(NullSafe.class, name(Tenant.class) + " has no property 'pln': did you mean 'plan'?"),
                Arguments.of(ByPosition.class, name(Tenant.class) + " has no property 'idd'"),
                Arguments.of(
                        InCondition.class, name(Tenant.class) + " has no property 'actve': did you mean 'active'?"),
                Arguments.of(InArguments.class, name(Tenant.class) + " has no property 'idd'"),
                Arguments.of(OfNumber.class, "java.lang.Integer has no property 'sum'"),
                Arguments.of(OfEnum.class, name(Plan.class) + " has no property 'nam': did you mean 'name'?"),
                Arguments.of(
                        Result.class,
                        "has an invalid settle '#result.tokens': " + name(Answer.class)
                                + " has no property 'tokens', only: counts, headers, other, parts, usage"),
                Arguments.of(
                        Chain.class, name(Usage.class) + " has no property 'totalToken': did you mean 'totalTokens'?"),
                Arguments.of(OfStage.class, name(Answer.class) + " has no property 'tokens'"),
                Arguments.of(OfFuture.class, name(Answer.class) + " has no property 'tokens'"),
                Arguments.of(OfMono.class, name(Answer.class) + " has no property 'tokens'"));
    }

    private static String name(Class<?> type) {
        return type.getName();
    }

    @ParameterizedTest
    @MethodSource("missing")
    void aMissingPropertyStopsTheStart(Class<?> type, String message) {
        assertStopsTheStart(type, message);
    }

    @Test
    void aPropertyThatMayExistDoesNot() {
        runner.withBean(Possible.class).withBean(Generic.class).run(context -> assertThat(
                        messages(context.getStartupFailure()))
                .isEmpty());
    }

    static class OfTenant {
        @RateLimited(policy = "search", key = "#tenant.idd")
        void call(Tenant tenant) {}
    }

    static class NoAccess {
        @RateLimited(policy = "search", key = "#tenant.name")
        void call(Tenant tenant) {}
    }

    static class NullSafe {
        @RateLimited(policy = "search", key = "#tenant?.pln")
        void call(Tenant tenant) {}
    }

    static class ByPosition {
        @RateLimited(policy = "search", key = "{#id, #p1.idd}")
        void call(String id, Tenant tenant) {}
    }

    static class InCondition {
        @RateLimited(policy = "search", condition = "!#tenant.actve and #tenant.active")
        void call(Tenant tenant) {}
    }

    static class InArguments {
        @RateLimited(policy = "search", cost = "#id.indexOf(#tenant.idd)")
        void call(String id, Tenant tenant) {}
    }

    static class OfNumber {
        @RateLimited(policy = "search", cost = "#rows.sum")
        void call(int rows) {}
    }

    static class OfEnum {
        @RateLimited(policy = "search", key = "#tenant.plan.nam")
        void call(Tenant tenant) {}
    }

    static class Result {
        @RateLimited(policy = "search", settle = "#result.tokens")
        Answer call() {
            throw new IllegalStateException();
        }
    }

    static class Chain {
        @RateLimited(policy = "search", settle = "#result.usage.totalToken")
        Answer call() {
            throw new IllegalStateException();
        }
    }

    static class OfStage {
        @RateLimited(policy = "search", settle = "#result.tokens")
        CompletionStage<Answer> call() {
            return new CompletableFuture<>();
        }
    }

    static class OfFuture {
        @RateLimited(policy = "search", settle = "#result.tokens")
        CompletableFuture<Answer> call() {
            return new CompletableFuture<>();
        }
    }

    static class OfMono {
        @RateLimited(policy = "search", settle = "#result.tokens")
        Mono<Answer> call() {
            return Mono.empty();
        }
    }

    /** Each expression can have a value. */
    static class Possible {

        @RateLimited(policy = "search", key = "{#tenant.id, #tenant.plan.name, #tenant.version, #tenant?.active}")
        void properties(Tenant tenant) {}

        @RateLimited(policy = "search", cost = "#tenant.class.name.length")
        void inherited(Tenant tenant) {}

        @RateLimited(policy = "search", key = "{#shape.size, #named.name, #any.id, #account.price}")
        void base(Shape shape, Named named, Object any, Account account) {}

        @RateLimited(policy = "search", key = "{#map.id, #list.id, #failure.id, #entity.statusCode}")
        void library(Map<String, String> map, List<String> list, IllegalStateException failure, HttpEntity<?> entity) {}

        @RateLimited(policy = "search", key = "{#ids.length, #ids[0], #name?.id, #rows.![id], #rows.?[id > 1]}")
        void containers(int[] ids, Optional<Tenant> name, List<Tenant> rows) {}

        @RateLimited(policy = "search", key = "#entity instanceof T(java.lang.String) ? '' : #entity.plan")
        void tested(Entity entity) {}

        @RateLimited(
                policy = "search",
                settle = "#result.usage.totalTokens + #result.counts.length + #result.parts[0].totalTokens"
                        + " + #result.headers.tokens + #result.other.tokens + #result.usage().tokens")
        Answer answer() {
            throw new IllegalStateException();
        }

        @RateLimited(policy = "search", settle = "#result.tokens")
        CompletableFuture<?> unknown() {
            return new CompletableFuture<>();
        }

        @RateLimited(policy = "search", settle = "#result.tokens")
        @SuppressWarnings("rawtypes")
        Mono raw() {
            return Mono.empty();
        }
    }

    static class Generic {
        @RateLimited(policy = "search", key = "#one.idd", settle = "#result.tokens")
        <T extends Tenant> T value(T one) {
            return one;
        }

        @RateLimited(policy = "search", settle = "#result.tokens")
        <T extends Tenant> CompletableFuture<T> future() {
            return new CompletableFuture<>();
        }
    }
}
