package io.ratelimit.annotation;

import static io.ratelimit.annotation.RateLimitedFailureTests.messages;
import static io.ratelimit.annotation.RateLimitedFailureTests.runner;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.annotation.Bean;
import org.springframework.core.PriorityOrdered;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ModelAttribute;
import org.springframework.web.bind.annotation.RestController;

/** Annotations that no proxy can enforce stop the start. */
class RateLimitedProxyTests {

    static Stream<Arguments> obstacles() {
        return Stream.of(
                Arguments.of(PrivateMethod.class, "the method is private"),
                Arguments.of(StaticMethod.class, "the method is static"),
                Arguments.of(FinalMethod.class, "the method is final"),
                Arguments.of(FinalMethodOfType.class, "the method is final"),
                Arguments.of(
                        PrivateHandler.class, "privateHandler() is private: Spring MVC would call it on the proxy"),
                Arguments.of(FinalModel.class, "model() is final: Spring MVC would call it on the proxy"));
    }

    @ParameterizedTest
    @MethodSource("obstacles")
    void aMethodThatNoProxyCanOverrideStopsTheStartEvenIfTheBeanIsLazy(Class<?> type, String message) {
        RateLimitedFailureTests.assertStopsTheStart(type, message);
    }

    @Test
    void aFinalClassStopsTheStart() {
        runner.withBean(FinalClass.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("@RateLimited on " + FinalClass.class.getName()
                        + ".call() can't be enforced: the class is final")
                .doesNotContain("CGLIB"));
    }

    @Test
    void aFinalClassBehindAnInterfaceIsLimited() {
        runner.withPropertyValues("spring.aop.proxy-target-class=false")
                .withBean(FinalCalls.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aBeanThatWasProxiedByHandStopsTheStart() {
        runner.withUserConfiguration(ByHand.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("would not be enforced: the bean 'calls' has no proxy that enforces limits"));
    }

    @Test
    void aBeanThatWasCreatedTooEarlyStopsTheStart() {
        runner.withUserConfiguration(TooEarly.class).run(context -> assertThat(messages(context.getStartupFailure()))
                .contains("would not be enforced: the bean 'calls' has no proxy that enforces limits"));
    }

    static class PrivateMethod {
        @RateLimited("search")
        private void call() {}

        void callIt() {
            call();
        }
    }

    static class StaticMethod {
        @RateLimited("search")
        static void call() {}
    }

    static class FinalMethod {
        @RateLimited("search")
        final void call() {}
    }

    @RateLimited("search")
    static class FinalMethodOfType {
        public final void call() {}
    }

    @RestController
    static class PrivateHandler {
        @RateLimited("search")
        @GetMapping("/limited")
        String limited() {
            return "";
        }

        @GetMapping("/other")
        private String privateHandler() {
            return "";
        }

        String callIt() {
            return privateHandler();
        }
    }

    @RestController
    static class FinalModel {
        @RateLimited("search")
        @GetMapping("/limited")
        String limited() {
            return "";
        }

        @ModelAttribute
        final String model() {
            return "";
        }
    }

    static final class FinalClass {
        @RateLimited("search")
        void call() {}
    }

    interface Plain {
        void call();
    }

    static final class FinalCalls implements Plain {
        @Override
        @RateLimited("search")
        public void call() {}
    }

    interface Calls {
        void call();
    }

    static class LimitedCalls implements Calls {
        @Override
        @RateLimited("search")
        public void call() {}
    }

    static class ByHand {
        @Bean
        Calls calls() {
            return (Calls) new ProxyFactory(new LimitedCalls()).getProxy();
        }
    }

    static class TooEarly {
        @Bean
        LimitedCalls calls() {
            return new LimitedCalls();
        }

        @Bean
        static First first(LimitedCalls calls) {
            return new First();
        }
    }

    static class First implements BeanPostProcessor, PriorityOrdered {

        @Override
        public int getOrder() {
            return 0;
        }
    }
}
