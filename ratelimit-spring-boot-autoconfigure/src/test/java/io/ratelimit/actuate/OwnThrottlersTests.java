package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketStore;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.WithoutSecurity;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application with its own bean of the type Throttlers. */
@Tag("slow")
class OwnThrottlersTests {

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits
              endpoint.ratelimits.access: unrestricted
            ratelimit.policies.api: { rate: 10/1d, cost: 5, paths: / }
            """;

    @Test
    void aChangeThatTheConfigurationCouldNotHaveIsRejected() {
        try (TestServer server = TestServer.open(YAML, Own.class, Api.class).start()) {
            Response changed = change(server.http(), "{\"capacity\": 1}");
            assertThat(changed.status()).as(changed.body()).isEqualTo(400);
            assertThat(changed.body())
                    .contains("capacity of 'api' must be at least the cost of the policy, 5, but was 1");
            assertThat(server.http().get("/").status()).isEqualTo(200);
            assertThat(change(server.http(), "{\"capacity\": 5}").status()).isEqualTo(200);
        }
    }

    @Test
    void aChildContextHasItsOwnIfItsParentExcludesOurs() {
        try (ConfigurableApplicationContext child = new SpringApplicationBuilder(Parent.class)
                .web(WebApplicationType.NONE)
                .child(TestServer.Application.class, Api.class)
                .web(WebApplicationType.SERVLET)
                .bannerMode(Banner.Mode.OFF)
                .run(
                        "--server.port=0",
                        "--ratelimit.policies.api.rate=1/1d",
                        "--spring.autoconfigure.exclude=" + String.join(",", WithoutSecurity.EXCLUDED))) {
            ApplicationContext parent = child.getParent();
            assertThat(parent.getBeanProvider(Throttlers.class).stream()).isEmpty();
            RawHttp http = new RawHttp(
                    child.getEnvironment().getRequiredProperty("local.server.port", int.class), "127.0.0.1");
            assertThat(http.get("/").status()).isEqualTo(200);
            assertThat(http.get("/").status()).isEqualTo(429);
            ((ConfigurableApplicationContext) parent).close();
        }
    }

    private static Response change(RawHttp http, String json) {
        return http.send("POST /actuator/ratelimits/api HTTP/1.1\r\nHost: localhost\r\n"
                + "Content-Type: application/json\r\nContent-Length: " + json.length() + "\r\n\r\n" + json);
    }

    @Configuration(proxyBeanMethods = false)
    static class Own {

        @Bean
        Throttlers throttlers(ConfiguredPolicies policies, BucketStore store, TimeSource time) {
            return new Throttlers(policies.all(), store, time, ThrottleListener.NONE);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration(exclude = RateLimitAutoConfiguration.class)
    static class Parent {}

    @RestController
    static class Api {

        @GetMapping("/")
        String get() {
            return "";
        }
    }
}
