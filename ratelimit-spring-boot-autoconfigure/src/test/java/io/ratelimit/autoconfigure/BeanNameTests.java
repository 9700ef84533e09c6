package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketStore;
import io.ratelimit.Throttlers;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.AnnotatedBeanDefinition;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.type.MethodMetadata;

/** The names of the beans that the library adds to an application. */
class BeanNameTests {

    private static ConfigurableApplicationContext start(Class<?> application, String... properties) {
        List<String> arguments = new ArrayList<>(List.of(properties));
        arguments.addAll(List.of(
                "--server.port=0",
                "--ratelimit.policies.all.rate=9/1d",
                "--spring.autoconfigure.exclude=" + String.join(",", WithoutSecurity.EXCLUDED)));
        return new SpringApplicationBuilder(application)
                .bannerMode(Banner.Mode.OFF)
                .run(arguments.toArray(String[]::new));
    }

    /** Returns the bean of every @Bean method of the library that this application uses. */
    private static List<String> ours(ConfigurableApplicationContext context) {
        List<String> names = new ArrayList<>();
        for (String name : context.getBeanFactory().getBeanDefinitionNames()) {
            if (context.getBeanFactory().getBeanDefinition(name) instanceof AnnotatedBeanDefinition definition
                    && isOurs(definition.getFactoryMethodMetadata())) {
                names.add(name);
            }
        }
        return names;
    }

    private static boolean isOurs(@Nullable MethodMetadata factoryMethod) {
        return factoryMethod != null
                && factoryMethod.getDeclaringClassName().startsWith("io.ratelimit.")
                && !factoryMethod.getDeclaringClassName().contains("Tests");
    }

    /** The name of a health component is the beginning of its bean's name, so the indicator is an exception. */
    private static void assertPrefixed(List<String> names) {
        assertThat(names)
                .hasSizeGreaterThan(20)
                .filteredOn(name -> !name.equals("ratelimitHealthIndicator"))
                .allMatch(name -> name.startsWith("rateLimit"), "begins with 'rateLimit'");
    }

    @Test
    void beginWithRateLimit() {
        try (ConfigurableApplicationContext context =
                start(Application.class, "--management.endpoints.web.exposure.include=*")) {
            assertPrefixed(ours(context));
            assertThat(ours(context)).hasSizeLessThanOrEqualTo(32);
        }
    }

    @Test
    void thereAreNoneWithoutTheAutoConfigurationOfThrottlers() {
        try (ConfigurableApplicationContext context = start(
                Application.class,
                "--management.endpoints.web.exposure.include=*",
                "--spring.autoconfigure.exclude=" + RateLimitAutoConfiguration.class.getName() + ","
                        + String.join(",", WithoutSecurity.EXCLUDED))) {
            assertThat(ours(context)).isEmpty();
        }
    }

    @Test
    void beginWithRateLimitOnRedis() {
        try (ConfigurableApplicationContext context = start(
                Application.class,
                "--management.endpoints.web.exposure.include=*",
                "--ratelimit.backend=redis",
                "--ratelimit.mode=off",
                "--spring.application.name=shop")) {
            assertThat(ours(context)).contains("rateLimitBucketStore", "rateLimitRedisStorage");
            assertPrefixed(ours(context));
        }
    }

    @Test
    void anApplicationMayUseThePlainNamesForBeansOfItsOwn() {
        try (ConfigurableApplicationContext context = start(Named.class)) {
            assertThat(context.getBean("throttlers")).isEqualTo("a list of engines");
            assertThat(context.getBean("bucketStore")).isEqualTo("a shop for buckets");
            assertThat(context.getBean("denialLog")).isEqualTo("a chapter of a book");
            assertThat(context.getBean(BucketStore.class)).isNotNull();
            assertThat(context.getBean(Throttlers.class).get("all")).isNotNull();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Named {

        @Bean
        String throttlers() {
            return "a list of engines";
        }

        @Bean
        String bucketStore() {
            return "a shop for buckets";
        }

        @Bean
        String denialLog() {
            return "a chapter of a book";
        }
    }
}
