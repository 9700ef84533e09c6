package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.Throttlers;
import java.io.IOException;
import java.lang.reflect.Method;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.Test;
import org.springframework.aop.support.StaticMethodMatcherPointcutAdvisor;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.ScheduledAnnotationBeanPostProcessor;
import org.springframework.util.ClassUtils;

/** Denied calls: fallbacks, exceptions, and the order among other advice. */
class DeniedCallTests extends AnnotatedCalls {

    static class Fallbacks {

        private final String field = "field";

        @RateLimited(rate = "1/1h", fallback = "later")
        Object plain(String text) {
            return "made";
        }

        private String later(String text) {
            return text + " later of " + field;
        }

        @RateLimited(rate = "1/1h", fallback = "because")
        CharSequence withReason(String text) {
            return "made";
        }

        CharSequence because(String text, RuntimeException denied) {
            return text + " because " + ((RateLimitExceededException) denied).policy();
        }

        @RateLimited(rate = "1/1h", fallback = "fail")
        void failing() throws IOException {}

        void fail() throws IOException {
            throw new IOException("on purpose");
        }

        @RateLimited(rate = "1/1h", name = "short", fallback = "ofShort")
        @RateLimited(rate = "2/1h", name = "long")
        String two() {
            return "made";
        }

        String ofShort() {
            return "short";
        }

        @RateLimited(rate = "1/1h", name = "few")
        @RateLimited(rate = "2/1h", name = "small", cost = "#rows", fallback = "tooMuch")
        String sized(int rows) {
            return "made";
        }

        String tooMuch(int rows, RateLimitExceededException denied) {
            return denied.policy();
        }

        @RateLimited(rate = "1/1h")
        CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("made");
        }
    }

    @Test
    void theFallbackAnswersADeniedCallOnTheBeanItself() {
        runner.withBean("f", Fallbacks.class).run(context -> {
            Fallbacks bean = context.getBean(Fallbacks.class);
            assertThat(bean.plain("a")).isEqualTo("made");
            assertThat(bean.plain("a")).isEqualTo("a later of field");
            assertThat(bean.withReason("a")).isEqualTo("made");
            assertThat(bean.withReason("a")).isEqualTo("a because f-with-reason");
            bean.failing();
            assertThatExceptionOfType(IOException.class).isThrownBy(bean::failing);
        });
    }

    @Test
    void onlyTheFallbackOfTheDenyingLimitIsCalled() {
        runner.withBean("f", Fallbacks.class).run(context -> {
            Fallbacks bean = context.getBean(Fallbacks.class);
            assertThat(bean.two()).isEqualTo("made");
            assertThat(bean.two()).isEqualTo("short");
            context.getBean(Throttlers.class).global("long").decide(1);
            context.getBean(Throttlers.class).reset("short");
            assertDenied(bean::two);
            assertThat(bean.sized(1)).isEqualTo("made");
            assertThat(bean.sized(3)).isEqualTo("small");
        });
    }

    @Test
    void aMethodThatReturnsAFutureThrowsAtOnce() {
        runner.withBean("f", Fallbacks.class).run(context -> {
            Fallbacks bean = context.getBean(Fallbacks.class);
            assertThat(bean.future().join()).isEqualTo("made");
            assertDenied(bean::future);
        });
    }

    /** The class path of these tests contains no AspectJ. */
    @Test
    void theTestsRunWithoutAspectJ() {
        assertThat(ClassUtils.isPresent("org.aspectj.weaver.Advice", null)).isFalse();
    }

    /** Advice with the lowest precedence, as that of transactions and caches. */
    static class Transactions extends StaticMethodMatcherPointcutAdvisor {

        int opened;

        Transactions() {
            setAdvice((MethodInterceptor) call -> {
                opened++;
                return call.proceed();
            });
        }

        @Override
        public boolean matches(Method method, Class<?> targetClass) {
            return targetClass == Searches.class;
        }
    }

    @Test
    void aDeniedCallOpensNoTransaction() {
        runner.withBean(
                        Transactions.class,
                        Transactions::new,
                        definition -> definition.setRole(BeanDefinition.ROLE_INFRASTRUCTURE))
                .withBean(Searches.class)
                .run(context -> {
                    Searches searches = context.getBean(Searches.class);
                    searches.search();
                    searches.search();
                    assertDenied(searches::search);
                    assertThat(context.getBean(Transactions.class).opened).isEqualTo(2);
                });
    }

    @EnableScheduling
    static class Scheduled {

        int made;

        @RateLimited("search")
        @org.springframework.scheduling.annotation.Scheduled(fixedDelay = 1, initialDelay = 1, timeUnit = TimeUnit.DAYS)
        public void work() {
            made++;
        }

        public int made() {
            return made;
        }
    }

    @Test
    void aScheduledMethodIsLimited() {
        runner.withUserConfiguration(Scheduled.class).run(context -> {
            Runnable task = context.getBean(ScheduledAnnotationBeanPostProcessor.class)
                    .getScheduledTasks()
                    .iterator()
                    .next()
                    .getTask()
                    .getRunnable();
            task.run();
            task.run();
            assertDenied(task::run);
            assertThat(context.getBean(Scheduled.class).made()).isEqualTo(2);
        });
    }

    @Test
    void backsOffWhenDisabled() {
        runner.withPropertyValues("ratelimit.enabled=false")
                .withBean(Searches.class)
                .run(context -> {
                    assertThat(context).doesNotHaveBean(RateLimitedAdvisor.class);
                    Searches searches = context.getBean(Searches.class);
                    searches.search();
                    searches.search();
                    assertThat(searches.search()).isEqualTo(3);
                });
    }
}
