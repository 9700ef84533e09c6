package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.web.servlet.RawHttp.Response;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.Banner;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The property {@code mode} of a policy and of the application: the weaker one holds. */
class ModeTests {

    private static final String YAML = """
            ratelimit:
              mode: %s
              policies:
                strict: { key: ip, rate: 1/1h, paths: [/strict, /all], mode: enforce }
                shadow: { key: ip, rate: 1/1h, paths: [/shadow, /all], mode: shadow }
                "off": { key: ip, rate: 1/1h, paths: [/off, /all], mode: off }
            """;

    @ParameterizedTest
    @CsvSource({
        "enforce, true,  'strict', 'strict,shadow'",
        "shadow,  false, '',       'strict,shadow'",
        "off,     false, '',       ''",
    })
    void theWeakerOfTheTwoCounts(String application, boolean refuses, String shown, String denied) {
        try (TestServer server =
                TestServer.open(YAML.formatted(application), Api.class).start()) {
            for (String path : List.of("/strict", "/shadow", "/off")) {
                Response first = server.http().get(path);
                Response second = server.http().get(path);
                assertThat(first.status()).isEqualTo(200);
                boolean refused = refuses && path.equals("/strict");
                assertThat(second.status()).as(path).isEqualTo(refused ? 429 : 200);
                boolean told = path.equals("/" + shown);
                assertThat(first.header("RateLimit") != null).as(path).isEqualTo(told);
                if (!refused) {
                    assertThat(second.names())
                            .as("no trace of a shadow")
                            .noneMatch(name -> name.startsWith("RateLimit") || name.contains("Retry"));
                }
            }
            assertThat(String.join(",", server.bean(Api.class).denied))
                    .as("but all that were asked are told to the listener")
                    .isEqualTo(denied);
            assertThat(server.available("off", "127.0.0.1")).isEqualTo(1);
            assertThat(server.available("shadow", "127.0.0.1")).isEqualTo(application.equals("off") ? 1 : 0);
        }
    }

    @Test
    void aShadowPolicyDecidesOnlyAfterTheEnforcedOnesAllow() {
        try (TestServer server =
                TestServer.open(YAML.formatted("enforce"), Api.class).start()) {
            server.http().get("/strict");
            assertThat(server.http().get("/all").body()).contains("\"violated-policies\":[\"strict\"]");
            assertThat(server.available("shadow", "127.0.0.1")).isEqualTo(1);
        }
    }

    /** SnakeYAML reads {@code off} as a boolean, so a real file has to show it. */
    @Test
    void offInAFileIsOff() {
        try (ConfigurableApplicationContext context = new SpringApplicationBuilder(FromFile.class)
                .bannerMode(Banner.Mode.OFF)
                .properties("server.port=0", "spring.config.location=classpath:io/ratelimit/web/servlet/modes.yml")
                .run()) {
            RawHttp http = new RawHttp(
                    context.getEnvironment().getRequiredProperty("local.server.port", int.class), "127.0.0.1");
            assertThat(http.get("/off").status()).isEqualTo(401);
            assertThat(http.get("/off").status()).isEqualTo(401);
            assertThat(http.get("/strict").status()).isEqualTo(401);
            assertThat(http.get("/strict").status()).isEqualTo(429);
            assertThat(context.getBean(Throttlers.class).snapshot("resting").available())
                    .isEqualTo(1);
        }
    }

    @RestController
    static class Api {

        private final List<String> denied = Collections.synchronizedList(new ArrayList<>());

        @GetMapping({"/strict", "/shadow", "/off", "/all"})
        String hello() {
            return "hello";
        }

        @Bean
        ThrottleListener listener() {
            return decision -> decision.denials()
                    .forEach(violation -> denied.add(violation.policy().name()));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class FromFile {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }
    }
}
