package io.ratelimit.compatibility;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** An application on a Spring Boot that is too old doesn't start, and its report states the version that it needs. */
@ExtendWith(OutputCaptureExtension.class)
class TooOldSpringBootTests {

    @ParameterizedTest
    @EnumSource(names = {"NONE", "SERVLET"})
    void theReportStatesTheNeededVersion(WebApplicationType type, CapturedOutput output) {
        assertThatThrownBy(() -> start(type, "--server.port=0", "--ratelimit.policies.api.rate=1/1m"));

        assertThat(output)
                .contains("ratelimit needs Spring Boot 4, but this application runs on Spring Boot "
                        + SpringBootVersion.getVersion() + ".")
                .contains("Upgrade to Spring Boot 4.0.7 or later, or remove 'ratelimit-spring-boot-starter'.");
    }

    private static void start(WebApplicationType type, String... arguments) {
        SpringApplication application = new SpringApplication(Application.class);
        application.setWebApplicationType(type);
        application.run(arguments).close();
    }

    @SpringBootConfiguration
    @EnableAutoConfiguration
    static class Application {}
}
