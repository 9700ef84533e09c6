package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimit.Backend;
import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.util.ClassUtils;

class RateLimitMicrometerAutoConfigurationTests {

    private static final AutoConfigurations METRICS = AutoConfigurations.of(
            MetricsAutoConfiguration.class,
            CompositeMeterRegistryAutoConfiguration.class,
            SimpleMetricsExportAutoConfiguration.class);

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    RateLimitAutoConfiguration.class,
                    RateLimitMicrometerAutoConfiguration.class,
                    ClassUtils.resolveClassName("io.ratelimit.annotation.RateLimitAnnotationAutoConfiguration", null)))
            .withPropertyValues("ratelimit.policies.api.rate=2/1h");

    @Test
    void theRegistryOfTheApplicationHasTheMeters() {
        runner.withConfiguration(METRICS).run(context -> {
            context.getBean(Throttlers.class).global("api").decide(2);
            context.getBean(Throttlers.class).global("api").decide(1);

            MeterRegistry registry = context.getBean(MeterRegistry.class);
            assertThat(count(registry, "api", "allowed")).isEqualTo(1);
            assertThat(count(registry, "api", "denied")).isEqualTo(1);
            assertThat(registry.get("ratelimit.available").gauge().value()).isZero();
            assertThat(context).doesNotHaveBean(Backend.Listener.class);
        });
    }

    @Test
    void aRegistryBeanOfTheApplicationSuffices() {
        runner.withBean(SimpleMeterRegistry.class).run(context -> {
            context.getBean(Throttlers.class).global("api").decide(1);
            assertThat(count(context.getBean(MeterRegistry.class), "api", "allowed"))
                    .isEqualTo(1);
        });
    }

    @Test
    void allRegistriesGetTheMeters() {
        runner.withConfiguration(METRICS)
                .withUserConfiguration(TwoRegistries.class)
                .run(context -> {
                    context.getBean(Throttlers.class).global("api").decide(1);
                    assertThat(count(context.getBean("one", MeterRegistry.class), "api", "allowed"))
                            .isEqualTo(1);
                    assertThat(count(context.getBean("two", MeterRegistry.class), "api", "allowed"))
                            .isEqualTo(1);
                });
    }

    @Test
    void limitsOfAnnotationsHaveMetersFromTheStart() {
        runner.withConfiguration(METRICS).withBean(Service.class).run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            assertThat(count(registry, "calls", "allowed")).isZero();
            context.getBean(Service.class).call();
            assertThat(count(registry, "calls", "allowed")).isEqualTo(1);
        });
    }

    @Test
    void withoutARegistryOrWithoutMicrometerThereAreNoMeters() {
        runner.run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(RateLimitMeters.class));
        runner.withClassLoader(new FilteredClassLoader(MeterRegistry.class))
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(RateLimitMeters.class));
        runner.withConfiguration(METRICS)
                .withPropertyValues("ratelimit.enabled=false")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(RateLimitMeters.class));
    }

    @Test
    void backsOffForMetersOfTheApplication() {
        RateLimitMeters custom = new RateLimitMeters(
                new SimpleMeterRegistry(), policy -> "local", policy -> false, policy -> true, policy -> false);
        runner.withConfiguration(METRICS)
                .withBean(RateLimitMeters.class, () -> custom)
                .run(context -> {
                    assertThat(context).getBean(RateLimitMeters.class).isSameAs(custom);
                    context.getBean(Throttlers.class).add(ThrottlePolicy.of("later", BucketSpec.of("1/1h")));
                    assertThat(context.getBean(MeterRegistry.class)
                                    .find("ratelimit.decisions")
                                    .counter())
                            .isNull();
                });
    }

    private static double count(MeterRegistry registry, String policy, String outcome) {
        return registry.get("ratelimit.decisions")
                .tags("policy", policy, "outcome", outcome, "backend", "local")
                .counter()
                .count();
    }

    static class Service {

        @RateLimited(name = "calls", rate = "5/1h")
        void call() {}
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoRegistries {

        @Bean
        MeterRegistry one() {
            return new SimpleMeterRegistry();
        }

        @Bean
        MeterRegistry two() {
            return new SimpleMeterRegistry();
        }
    }
}
