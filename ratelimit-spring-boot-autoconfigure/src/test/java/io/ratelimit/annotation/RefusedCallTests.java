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

/** What a refused call gives, and who never hears of it. */
class RefusedCallTests extends AnnotatedCalls {

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

        CharSequence because(String text, RuntimeException refused) {
            return text + " because " + ((RateLimitExceededException) refused).policy();
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

        String tooMuch(int rows, RateLimitExceededException refused) {
            return refused.policy();
        }

        @RateLimited(rate = "1/1h")
        CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("made");
        }
    }

    @Test
    void theFallbackAnswersARefusedCallOnTheBeanItself() {
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
    void theFallbackIsForTheLimitThatHasIt() {
        runner.withBean("f", Fallbacks.class).run(context -> {
            Fallbacks bean = context.getBean(Fallbacks.class);
            assertThat(bean.two()).isEqualTo("made");
            assertThat(bean.two()).isEqualTo("short");
            context.getBean(Throttlers.class).get("long").decide(1);
            context.getBean(Throttlers.class).reset("short");
            refused(bean::two);
            assertThat(bean.sized(1)).isEqualTo("made");
            assertThat(bean.sized(3)).isEqualTo("small");
        });
    }

    @Test
    void aMethodThatReturnsAFutureThrowsAsOthersDo() {
        runner.withBean("f", Fallbacks.class).run(context -> {
            Fallbacks bean = context.getBean(Fallbacks.class);
            assertThat(bean.future().join()).isEqualTo("made");
            refused(bean::future);
        });
    }

    /** What the application starts with: nothing that brings AspectJ. */
    @Test
    void noAspectJIsNeeded() {
        assertThat(ClassUtils.isPresent("org.aspectj.weaver.Advice", null)).isFalse();
    }

    /** Stands where transactions and caches do. */
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
    void aRefusedCallOpensNoTransaction() {
        runner.withBean(
                        Transactions.class,
                        Transactions::new,
                        definition -> definition.setRole(BeanDefinition.ROLE_INFRASTRUCTURE))
                .withBean(Searches.class)
                .run(context -> {
                    Searches searches = context.getBean(Searches.class);
                    searches.search();
                    searches.search();
                    refused(searches::search);
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
    void whatASchedulerCallsIsLimited() {
        runner.withUserConfiguration(Scheduled.class).run(context -> {
            Runnable task = context.getBean(ScheduledAnnotationBeanPostProcessor.class)
                    .getScheduledTasks()
                    .iterator()
                    .next()
                    .getTask()
                    .getRunnable();
            task.run();
            task.run();
            refused(task::run);
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
