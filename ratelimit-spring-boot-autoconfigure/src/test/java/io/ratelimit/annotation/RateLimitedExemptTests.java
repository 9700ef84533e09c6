package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import org.junit.jupiter.api.Test;
import org.springframework.aop.support.AopUtils;

/** Methods that {@code @RateLimitExempt} frees of the limit of their type. */
class RateLimitedExemptTests extends AnnotatedCalls {

    @Test
    void anExemptMethodIsFreeOfTheLimitOfItsType() {
        runner.withBean(Orders.class).run(context -> {
            Orders orders = context.getBean(Orders.class);
            orders.place();
            assertThat(available(context, "export")).isEqualTo(7);

            orders.status();
            orders.byMetaAnnotation();
            orders.ofInterface();
            assertThat(available(context, "export")).isEqualTo(7);
        });
    }

    @Test
    void theNearestAnnotationOfAMethodCounts() {
        runner.withBean(FewerOrders.class).run(context -> {
            FewerOrders orders = context.getBean(FewerOrders.class);
            orders.place();
            assertThat(available(context, "export"))
                    .as("exempt, and not so in its superclass")
                    .isEqualTo(10);

            orders.status();
            assertThat(available(context, "search"))
                    .as("limited, and exempt in its superclass")
                    .isEqualTo(1);
            orders.byMetaAnnotation();
            assertThat(available(context, "export"))
                    .as("exempt by its superclass")
                    .isEqualTo(10);
        });
    }

    @Test
    void aMethodThatASuperclassDeclaresIsExemptByTheInterfaceOfItsBean() {
        runner.withBean(Inheriting.class).run(context -> {
            Inheriting bean = context.getBean(Inheriting.class);
            bean.ofInterface();
            assertThat(available(context, "search")).isEqualTo(2);
            bean.other();
            assertThat(available(context, "search")).isEqualTo(1);
        });
    }

    @Test
    void anExemptionAloneNeedsNoProxy() {
        runner.withBean(Alone.class).run(context -> assertThat(AopUtils.isAopProxy(context.getBean(Alone.class)))
                .isFalse());
    }

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimitExempt
    @interface Free {}

    interface Exempting {
        @RateLimitExempt
        void ofInterface();
    }

    @RateLimited("export")
    static class Orders implements Exempting {

        public void place() {}

        @RateLimitExempt
        public void status() {}

        @Free
        public void byMetaAnnotation() {}

        @Override
        public void ofInterface() {}
    }

    static class FewerOrders extends Orders {

        @Override
        @RateLimitExempt
        public void place() {}

        @Override
        @RateLimited("search")
        public void status() {}
    }

    static class Base {

        public void ofInterface() {}

        public void other() {}
    }

    @RateLimited("search")
    static class Inheriting extends Base implements Exempting {}

    static class Alone {

        @RateLimitExempt
        public void free() {}
    }
}
