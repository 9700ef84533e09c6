package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.File;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.jar.Attributes;
import java.util.jar.Manifest;
import net.bytebuddy.ByteBuddy;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.CustomScopeConfigurer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.context.support.SimpleThreadScope;
import org.springframework.core.annotation.AliasFor;
import org.springframework.util.ReflectionUtils;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ModelAttribute;
import org.springframework.web.bind.annotation.RestController;

/** Methods, types and beans on which the annotation is found. */
class RateLimitedScannerTests extends AnnotatedCalls {

    interface Contract<T> {

        @RateLimited("search")
        void call(T argument);
    }

    static class Implementation implements Contract<String> {

        @Override
        public void call(String argument) {}
    }

    abstract static class Base<T> {

        @RateLimited("search")
        public void call(T argument) {}
    }

    static class Inheriting extends Base<String> {}

    static class Overriding extends Base<String> {

        @Override
        public void call(String argument) {}
    }

    static class Unaware {

        public void call(String argument) {}
    }

    interface Extending extends Contract<String> {}

    static class ImplementingExtended implements Extending {

        @Override
        public void call(String argument) {}
    }

    static class ImplementingByInheritance extends Unaware implements Contract<String> {}

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimited(policy = "export", cost = "5")
    @interface Searching {

        @AliasFor(annotation = RateLimited.class, attribute = "policy")
        String[] by() default "export";

        @AliasFor(annotation = RateLimited.class, attribute = "cost")
        String price() default "5";
    }

    static class Meta {

        @Searching(by = "search", price = "1")
        public void call(String argument) {}
    }

    @RateLimited("search")
    interface OnInterface {

        void call(String argument);
    }

    static class OfAnnotatedInterface implements OnInterface {

        @Override
        public void call(String argument) {}
    }

    @ParameterizedTest
    @ValueSource(
            classes = {
                Implementation.class,
                Inheriting.class,
                Overriding.class,
                ImplementingByInheritance.class,
                ImplementingExtended.class,
                Meta.class,
                OfAnnotatedInterface.class
            })
    void theAnnotationIsFoundOnInterfacesSuperclassesAndMetaAnnotations(Class<?> type) {
        runner.withBean(type).run(context -> {
            Object bean = context.getBean(type);
            var call = ReflectionUtils.findMethod(bean.getClass(), "call", (Class<?>[]) null);
            call.setAccessible(true);
            call.invoke(bean, "a");
            call.invoke(bean, "a");
            assertThatThrownBy(() -> call.invoke(bean, "a")).hasCauseInstanceOf(RateLimitExceededException.class);
        });
    }

    /** PetClinic is an application, though its package and the title of its jar are like those of Spring. */
    @Test
    void anExampleOfSpringIsAnApplication(@TempDir Path directory) throws Exception {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.IMPLEMENTATION_TITLE, "spring-petclinic");
        String name = "org.springframework.samples.petclinic.Owners";
        RateLimited annotation = OnInterface.class.getAnnotation(RateLimited.class);
        File jar = directory.resolve("petclinic.jar").toFile();
        new ByteBuddy()
                .subclass(Object.class)
                .name(name)
                .annotateType(annotation)
                .make()
                .toJar(jar, manifest);
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {jar.toURI().toURL()}, getClass().getClassLoader())) {
            Class<?> owners = loader.loadClass(name);
            assertThat(owners.getPackage().getImplementationTitle()).isEqualTo("spring-petclinic");
            assertThat(RateLimitedScanner.isCandidate(owners)).isTrue();
        }
    }

    @Test
    void callsThroughAGenericInterfaceAreLimited() {
        runner.withBean(Implementation.class).run(context -> {
            @SuppressWarnings("unchecked")
            Contract<String> bean = context.getBean(Contract.class);
            bean.call("a");
            bean.call("a");
            assertDenied(() -> bean.call("a"));
        });
    }

    /** Spring makes such clients of interfaces with {@code @HttpExchange}. */
    @Test
    void aProxyWithoutAClassBehindItIsLimited() {
        runner.withBean(Extending.class, () -> ProxyFactory.getProxy(Extending.class, (MethodInterceptor) call -> null))
                .run(context -> {
                    Extending client = context.getBean(Extending.class);
                    client.call("a");
                    client.call("a");
                    assertDenied(() -> client.call("a"));
                });
    }

    @Test
    void anAnnotationOnAMethodReplacesThoseOnItsTypeAndInterface() {
        runner.withBean(Nearer.class).run(context -> {
            Nearer nearer = context.getBean(Nearer.class);
            for (int i = 0; i < 3; i++) {
                nearer.call("a");
            }
            assertDenied(() -> nearer.call("a"));
            assertThat(available(context, "search")).isEqualTo(2);
        });
    }

    static class Nearer implements OnInterface {

        @Override
        @RateLimited("export")
        public void call(String argument) {}
    }

    @ParameterizedTest
    @CsvSource({"true, true", "false, true", "true, false", "false, false"})
    void bothKindsOfProxiesAreLimited(boolean auto, boolean byClass) {
        runner.withPropertyValues("spring.aop.auto=" + auto, "spring.aop.proxy-target-class=" + byClass)
                .withBean("implementation", Implementation.class)
                .withBean(Searches.class)
                .run(context -> {
                    @SuppressWarnings("unchecked")
                    Contract<String> bean = (Contract<String>) context.getBean("implementation");
                    assertThat(AopUtils.isJdkDynamicProxy(bean)).isEqualTo(!byClass);
                    bean.call("a");
                    context.getBean(Searches.class).search();
                    assertDenied(() -> bean.call("a"));
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class ByFactoryMethod {

        @Bean
        @Lazy
        @SuppressWarnings("rawtypes")
        Contract hidden() {
            return new Hiding();
        }
    }

    static class Hiding implements Contract<String> {

        @Override
        @RateLimited(rate = "1/1h")
        public void call(String argument) {}
    }

    @Test
    void aLazyBeanWhoseClassIsUnknownAtTheStartIsLimited() {
        runner.withUserConfiguration(ByFactoryMethod.class).run(context -> {
            @SuppressWarnings("unchecked")
            Contract<String> bean = (Contract<String>) context.getBean("hidden");
            bean.call("a");
            assertDenied(() -> bean.call("a"));
            assertThat(available(context, "hidden-call")).isZero();
        });
    }

    static class CallsEarly {

        CallsEarly(Searches searches) {
            searches.search();
        }
    }

    @Test
    void aCallDuringTheStartIsCharged() {
        runner.withBean(CallsEarly.class)
                .withBean(Searches.class)
                .run(context -> assertThat(available(context, "search")).isEqualTo(1));
    }

    @Test
    void allInstancesOfAPrototypeShareTheLimit() {
        runner.withBean(Searches.class, Searches::new, definition -> definition.setScope("prototype"))
                .run(context -> {
                    context.getBean(Searches.class).search();
                    context.getBean(Searches.class).search();
                    assertDenied(context.getBean(Searches.class)::search);
                });
    }

    static class Scoped {

        @Bean
        static CustomScopeConfigurer threads() {
            CustomScopeConfigurer scopes = new CustomScopeConfigurer();
            scopes.addScope("thread", new SimpleThreadScope());
            return scopes;
        }

        @Bean
        @Scope(scopeName = "thread", proxyMode = ScopedProxyMode.TARGET_CLASS)
        Searches searches() {
            return new Searches();
        }
    }

    /** The scope has a proxy, and its target has another one. */
    @Test
    void aScopedBeanIsChargedOnce() {
        runner.withUserConfiguration(Scoped.class).run(context -> {
            Searches searches = (Searches) context.getBean("searches");
            searches.search();
            assertThat(available(context, "search")).isEqualTo(1);
        });
    }

    static class Factory implements FactoryBean<Contract<String>> {

        @Override
        @SuppressWarnings("unchecked")
        public Contract<String> getObject() {
            ProxyFactory factory = new ProxyFactory(new Class<?>[] {Contract.class});
            factory.setTarget(new Object());
            factory.addAdvice((MethodInterceptor) call -> null);
            return (Contract<String>) factory.getProxy();
        }

        @Override
        public Class<?> getObjectType() {
            return Contract.class;
        }
    }

    /** Spring Data creates its repositories in this way. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aProxyFromAFactoryIsChargedOnce(boolean byClass) {
        runner.withPropertyValues("spring.aop.proxy-target-class=" + byClass)
                .withBean("repository", Factory.class)
                .run(context -> {
                    @SuppressWarnings("unchecked")
                    Contract<String> repository = (Contract<String>) context.getBean("repository");
                    repository.call("a");
                    repository.call("a");
                    assertDenied(() -> repository.call("a"));
                });
    }

    @RestController
    @RateLimited("search")
    static class Controller {

        @GetMapping
        public void handle() {}

        @ModelAttribute
        public void around() {}

        @ExceptionHandler
        public void after(Exception failure) {}
    }

    @Test
    void onAControllerOnlyHandlersAreLimited() {
        runner.withBean(Controller.class).run(context -> {
            Controller controller = context.getBean(Controller.class);
            controller.around();
            controller.handle();
            controller.after(new Exception());
            assertThat(available(context, "search")).isEqualTo(1);
        });
    }
}
