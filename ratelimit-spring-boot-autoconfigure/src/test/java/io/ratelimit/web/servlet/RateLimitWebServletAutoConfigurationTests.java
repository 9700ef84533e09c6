package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitReportAutoConfiguration;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import io.ratelimit.web.servlet.rejection.ProblemRejectionHandler;
import io.ratelimit.web.servlet.rejection.RejectionHandler;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.DispatcherType;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.AnnotatedBeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.servlet.filter.OrderedFormContentFilter;
import org.springframework.boot.servlet.filter.OrderedHiddenHttpMethodFilter;
import org.springframework.boot.test.context.assertj.AssertableWebApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;
import org.springframework.web.servlet.DispatcherServlet;

@ExtendWith(OutputCaptureExtension.class)
class RateLimitWebServletAutoConfigurationTests {

    private static final AutoConfigurations OURS = AutoConfigurations.of(
            RateLimitAutoConfiguration.class,
            RateLimitReportAutoConfiguration.class,
            RateLimitWebServletAutoConfiguration.class);
    private static final String BEFORE = "rateLimitFilterBeforeAuthentication";
    private static final String AFTER = "rateLimitFilterAfterAuthentication";
    private static final String DISPATCHES = "rateLimitDispatchFilter";

    private final WebApplicationContextRunner contextRunner = new WebApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(DispatcherServletAutoConfiguration.class, WebMvcAutoConfiguration.class))
            .withConfiguration(OURS)
            .withPropertyValues("ratelimit.policies.api.rate=2/1s");

    @Test
    void registersTheFilterAroundSpringSecurity() {
        contextRunner.run(context -> {
            assertThat(registration(context, BEFORE).getOrder())
                    .isGreaterThan(OrderedHiddenHttpMethodFilter.DEFAULT_ORDER)
                    .isLessThan(OrderedFormContentFilter.DEFAULT_ORDER);
            assertThat(registration(context, AFTER).getOrder()).isEqualTo(-99);
        });
    }

    @Test
    void followsSpringSecurityWhereItIsMoved() {
        contextRunner.withPropertyValues("spring.security.filter.order=50").run(context -> {
            assertThat(registration(context, BEFORE).getOrder()).isEqualTo(-9950);
            assertThat(registration(context, AFTER).getOrder()).isEqualTo(51);
        });
        contextRunner.withPropertyValues("spring.security.filter.order=-9950").run(context -> {
            assertThat(registration(context, BEFORE).getOrder()).isEqualTo(-9951);
            assertThat(registration(context, AFTER).getOrder()).isEqualTo(-9949);
        });
    }

    @Test
    void chargesRequestsByWhateverDispatchTheyCome() {
        contextRunner.run(context -> {
            for (String name : List.of(BEFORE, AFTER)) {
                assertThat(registration(context, name).determineDispatcherTypes())
                        .doesNotContain(DispatcherType.INCLUDE)
                        .hasSize(DispatcherType.values().length - 1);
                assertThat(registration(context, name).isAsyncSupported()).isTrue();
            }
        });
    }

    @Test
    void registersAFilterForLaterDispatchesBeforeSpringSecurity() {
        contextRunner.run(context -> {
            FilterRegistrationBean<?> registration = registration(context, DISPATCHES);
            assertThat(registration.getOrder()).isEqualTo(-101);
            assertThat(registration.determineDispatcherTypes())
                    .containsExactlyInAnyOrder(DispatcherType.ASYNC, DispatcherType.FORWARD, DispatcherType.ERROR);
            assertThat(registration.isAsyncSupported()).isTrue();
        });
    }

    @Test
    void providesABeanForEachStepOfARequest() {
        contextRunner.run(context -> assertThat(context)
                .hasSingleBean(Throttlers.class)
                .hasSingleBean(ProblemRejectionHandler.class)
                .hasSingleBean(Rejections.class)
                .hasSingleBean(Endpoints.class)
                .hasSingleBean(RequestPolicies.class)
                .hasBean("rateLimitStartupReport"));
    }

    @Test
    void warnsOfASecondDispatcherServlet(CapturedOutput output) {
        String warning = "There is not exactly one DispatcherServlet: all requests have the same endpoint in keys";
        contextRunner.run(context -> assertThat(output).doesNotContain(warning));
        contextRunner
                .withBean(
                        "second",
                        DispatcherServletRegistrationBean.class,
                        () -> new DispatcherServletRegistrationBean(new DispatcherServlet(), "/second/*"))
                .run(context -> assertThat(output).contains(warning));
    }

    @Test
    void needsAServletApplication() {
        new ApplicationContextRunner().withConfiguration(OURS).run(context -> assertThat(context)
                .hasSingleBean(Throttlers.class)
                .doesNotHaveBean(FilterRegistrationBean.class)
                .doesNotHaveBean(RequestPolicies.class)
                .doesNotHaveBean(RejectionHandler.class));
    }

    @Test
    void leavesTheRejectionHandlerToTheUser() {
        backsOffFor(RejectionHandler.class, () -> (request, response, decision) -> {});
    }

    /** Every other bean is part of how requests are limited: a second one stops the start, and none is replaced in silence. */
    @Test
    void onlyDocumentedBeansBackOff() {
        contextRunner.run(context -> assertThat(context.getBeanFactory().getBeanDefinitionNames())
                .filteredOn(name -> backsOff(context, name))
                .containsExactlyInAnyOrder(
                        "rateLimitTimeSource",
                        "rateLimitBucketStore",
                        "rateLimitFailureListener",
                        "rateLimitThrottlers",
                        "rateLimitRejectionHandler",
                        "rateLimitEndpoints",
                        BEFORE,
                        AFTER,
                        DISPATCHES));
    }

    private static boolean backsOff(AssertableWebApplicationContext context, String name) {
        return name.startsWith("rateLimit")
                && context.getBeanFactory().getBeanDefinition(name) instanceof AnnotatedBeanDefinition definition
                && definition.getFactoryMethodMetadata() != null
                && definition.getFactoryMethodMetadata().isAnnotated(ConditionalOnMissingBean.class.getName());
    }

    @ParameterizedTest
    @ValueSource(strings = {BEFORE, AFTER, DISPATCHES})
    void leavesAFilterToTheUser(String name) {
        FilterRegistrationBean<RateLimitFilter> own = new FilterRegistrationBean<>();
        own.setEnabled(false);
        contextRunner
                .withBean(name, FilterRegistrationBean.class, () -> own)
                .run(context -> assertThat(context.getBean(name)).isSameAs(own));
    }

    @Test
    void worksWithoutPolicies() {
        new WebApplicationContextRunner().withConfiguration(OURS).run(context -> assertThat(
                        context.getBean(RequestPolicies.class).all())
                .isEmpty());
    }

    @Test
    void leavesTheEndpointsToTheUser() {
        backsOffFor(Endpoints.class, () -> new Endpoints("", "", List.of()));
    }

    private <T> void backsOffFor(Class<T> type, Supplier<T> own) {
        contextRunner
                .withBean("own", type, own)
                .run(context ->
                        assertThat(context).hasNotFailed().getBeans(type).containsOnlyKeys("own"));
    }

    private static FilterRegistrationBean<?> registration(AssertableWebApplicationContext context, String name) {
        return context.getBean(name, FilterRegistrationBean.class);
    }
}
