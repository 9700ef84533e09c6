package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.jayway.jsonpath.JsonPath;
import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.WithoutSecurity;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;

/** An application with a bucket store of its own that reports the state of its backends. */
class BackendBeansTests {

    private static final String METERS = "io.ratelimit.autoconfigure.RateLimitMicrometerAutoConfiguration";

    private static ConfigurableApplicationContext start(
            Class<?> backends, String exposed, boolean health, boolean meters) {
        String exclude = (meters ? "" : METERS + ",") + String.join(",", WithoutSecurity.EXCLUDED);
        return new SpringApplicationBuilder(Application.class, backends)
                .bannerMode(Banner.Mode.OFF)
                .run(
                        "--server.port=0",
                        "--ratelimit.backend=redis",
                        "--ratelimit.policies.all.rate=9/1d",
                        "--management.endpoint.health.show-details=always",
                        "--management.health.redis.enabled=false",
                        "--management.health.ratelimit.enabled=" + health,
                        "--management.endpoints.web.exposure.include=" + exposed,
                        "--spring.autoconfigure.exclude=" + exclude);
    }

    private static <T> T read(ConfigurableApplicationContext context, String path, String found) throws Exception {
        URI uri = URI.create(
                "http://127.0.0.1:" + context.getEnvironment().getProperty("local.server.port") + "/actuator/" + path);
        String body = HttpClient.newHttpClient()
                .send(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofString())
                .body();
        return JsonPath.read(body, found);
    }

    @ParameterizedTest
    @CsvSource({
        "health, true, false",
        "ratelimits, false, false",
        "ratelimitdashboard, false, false",
        "info, false, true"
    })
    void twoBackendsWithoutAPrimaryOneStopTheStart(String exposed, boolean health, boolean meters) {
        assertThatThrownBy(() -> start(Two.class, exposed, health, meters).close())
                .rootCause()
                .isInstanceOf(NoUniqueBeanDefinitionException.class)
                .hasMessageContaining("'io.ratelimit.Backend'")
                .hasMessageContaining("one,two");
    }

    @Test
    void thePrimaryOneOfTwoBackendsIsReported() throws Exception {
        try (ConfigurableApplicationContext context =
                start(OneOfThemPrimary.class, "health,ratelimits,ratelimitdashboard", true, true)) {
            assertThat(BackendBeansTests.<String>read(context, "health", "$.components.ratelimit.details.backend"))
                    .isEqualTo("Two");
            assertThat(BackendBeansTests.<String>read(context, "ratelimits", "$.backend.name"))
                    .isEqualTo("Two");
            assertThat(BackendBeansTests.<List<String>>read(context, "ratelimitdashboard/data", "$.backends[*].name"))
                    .containsExactly("Two");
            assertThat(context.getBean(MeterRegistry.class)
                            .get("ratelimit.backend")
                            .timers())
                    .extracting(timer -> timer.getId().getTag("backend"))
                    .containsOnly("two");
        }
    }

    private record FixedBackend(String name, Backend.State state) implements Backend {

        FixedBackend(String name) {
            this(name, Backend.State.up());
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        BucketStore store(TimeSource time) {
            BucketStore local = BucketStore.local(time);
            return (BucketStore) Proxy.newProxyInstance(
                    getClass().getClassLoader(),
                    new Class<?>[] {BucketStore.class},
                    (proxy, method, arguments) -> method.invoke(local, arguments));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Two {

        @Bean
        Backend one() {
            return new FixedBackend("One");
        }

        @Bean
        Backend two() {
            return new FixedBackend("Two");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OneOfThemPrimary {

        @Bean
        Backend one() {
            return new FixedBackend("One");
        }

        @Bean
        @Primary
        Backend two() {
            return new FixedBackend("Two");
        }
    }
}
