package io.ratelimit.autoconfigure.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.key.ClientIp;
import io.ratelimit.web.servlet.ClientAddresses;
import io.ratelimit.web.servlet.Endpoints;
import io.ratelimit.web.servlet.LateRejections;
import io.ratelimit.web.servlet.ProblemRejectionHandler;
import io.ratelimit.web.servlet.RateLimitFilter;
import io.ratelimit.web.servlet.Rejection;
import io.ratelimit.web.servlet.RejectionHandler;
import io.ratelimit.web.servlet.RequestPolicies;
import jakarta.servlet.DispatcherType;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.assertj.AssertableWebApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;

class RateLimitWebServletAutoConfigurationTests {

    private static final AutoConfigurations OURS =
            AutoConfigurations.of(RateLimitAutoConfiguration.class, RateLimitWebServletAutoConfiguration.class);
    private static final String BEFORE = "rateLimitFilterBeforeAuthentication";
    private static final String AFTER = "rateLimitFilterAfterAuthentication";
    private static final String LATE = "rateLimitLateRejectionFilter";

    private final WebApplicationContextRunner contextRunner = new WebApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(DispatcherServletAutoConfiguration.class, WebMvcAutoConfiguration.class))
            .withConfiguration(OURS)
            .withPropertyValues("ratelimit.policies.api.rate=2/1s");

    @Test
    void registersTheFilterAroundSpringSecurity() {
        contextRunner.run(context -> {
            assertThat(registration(context, BEFORE).getOrder()).isEqualTo(-101);
            assertThat(registration(context, AFTER).getOrder()).isEqualTo(-99);
        });
    }

    @Test
    void followsSpringSecurityWhereItIsMoved() {
        contextRunner.withPropertyValues("spring.security.filter.order=50").run(context -> {
            assertThat(registration(context, BEFORE).getOrder()).isEqualTo(49);
            assertThat(registration(context, AFTER).getOrder()).isEqualTo(51);
        });
    }

    /** An async controller that forwards would pay twice otherwise. */
    @Test
    void chargesRequestsOnlyAsTheyComeIn() {
        contextRunner.run(context -> {
            for (String name : List.of(BEFORE, AFTER)) {
                assertThat(registration(context, name).determineDispatcherTypes())
                        .containsExactly(DispatcherType.REQUEST);
                assertThat(registration(context, name).isAsyncSupported()).isTrue();
            }
        });
    }

    @Test
    void looksForLateRefusalsOnlyWhereAPolicyHasThem() {
        contextRunner.run(
                context -> assertThat(registration(context, LATE).isEnabled()).isFalse());
        contextRunner
                .withPropertyValues("ratelimit.policies.api.rejection-delay=2s")
                .run(context -> {
                    FilterRegistrationBean<?> registration = registration(context, LATE);
                    assertThat(registration.isEnabled()).isTrue();
                    assertThat(registration.getOrder()).isEqualTo(-101);
                    assertThat(registration.determineDispatcherTypes()).containsExactly(DispatcherType.ASYNC);
                    assertThat(registration.isAsyncSupported()).isTrue();
                });
    }

    @Test
    void leavesTheLateRejectionsToTheUser() {
        backsOffFor(LateRejections.class, () -> new LateRejections(Map.of(), TimeSource.system()));
    }

    @Test
    void providesABeanForEachPartOfTheWay() {
        contextRunner.run(context -> assertThat(context)
                .hasSingleBean(Throttlers.class)
                .hasSingleBean(ProblemRejectionHandler.class)
                .hasSingleBean(Rejection.class)
                .hasSingleBean(LateRejections.class)
                .hasSingleBean(Endpoints.class)
                .hasSingleBean(RequestPolicies.class)
                .hasSingleBean(ClientAddresses.class)
                .hasSingleBean(ProxyReport.class)
                .hasSingleBean(OverrideReport.class)
                .hasSingleBean(PolicyReport.class));
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

    @Test
    void leavesTheRejectionToTheUser() {
        backsOffFor(Rejection.class, () -> new Rejection(null, null, null, null));
    }

    @Test
    void leavesTheEndpointsToTheUser() {
        backsOffFor(Endpoints.class, () -> new Endpoints("", "", List.of()));
    }

    @Test
    void leavesTheRequestPoliciesToTheUser() {
        backsOffFor(
                RequestPolicies.class,
                () -> new RequestPolicies(
                        List.of(), new Endpoints("", "", List.of()), addresses(), ThrottleListener.NONE));
    }

    @ParameterizedTest
    @ValueSource(strings = {BEFORE, AFTER, LATE})
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
    void leavesTheClientAddressesToTheUser() {
        backsOffFor(ClientAddresses.class, RateLimitWebServletAutoConfigurationTests::addresses);
    }

    private static ClientAddresses addresses() {
        return new ClientAddresses(new ClientIp(List.of(), "x-forwarded-for", 64));
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
