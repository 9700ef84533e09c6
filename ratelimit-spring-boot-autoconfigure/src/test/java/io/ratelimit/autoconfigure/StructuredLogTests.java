package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.BucketSpec;
import io.ratelimit.Throttlers;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.TestServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.MDC;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.logging.LoggingSystemProperty;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The fields of log lines. */
@ExtendWith(OutputCaptureExtension.class)
class StructuredLogTests {

    private static final String YAML = """
            logging.structured.format.console: %s
            ratelimit:
              policies:
                one: { rate: 1/1m, paths: /one }
                candidate: { rate: 1/1m, paths: /two, mode: shadow }
                costly: { rate: 9/1m, paths: /three, cost: "header('X-Cost').length() / 0" }
            """;

    /** Replaces logback-test.xml as an application without a file of its own has it. */
    private static final String LOGBACK = """
            <configuration>
                <include resource="org/springframework/boot/logging/logback/defaults.xml"/>
                <include resource="org/springframework/boot/logging/logback/structured-console-appender.xml"/>
                <root level="INFO"><appender-ref ref="CONSOLE"/></root>
            </configuration>
            """;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"ecs", "logstash"})
    void structuredLinesHaveThePolicyAndTheOutcome(String format, CapturedOutput output) throws IOException {
        Path logback = Files.writeString(directory.resolve("logback.xml"), LOGBACK);
        configure("logging.config: " + logback + "\n" + YAML.formatted(format));
        try (ConfigurableApplicationContext context = start(Api.class)) {
            RawHttp http = new RawHttp(
                    context.getEnvironment().getRequiredProperty("local.server.port", int.class), "127.0.0.1");
            for (String path : new String[] {"/one", "/one", "/two", "/two", "/three"}) {
                http.get(path, "X-Cost: attacker\"\\n");
            }
            context.getBean(Throttlers.class).get("one").reconfigure(BucketSpec.of("2/1m"));
        } finally {
            resetLogging();
        }
        assertThat(fields(output, "'one' denied")).isEqualTo(Map.of("policy", "one", "outcome", "denied"));
        assertThat(fields(output, "'candidate' denied"))
                .isEqualTo(Map.of("policy", "candidate", "outcome", "shadow-denied"));
        assertThat(fields(output, "'costly' could not determine")).isEqualTo(Map.of("policy", "costly"));
        assertThat(fields(output, "'one' was changed")).isEqualTo(Map.of("policy", "one"));
        assertThat(output.getOut()).doesNotContain("attacker");
    }

    @Test
    void theEntriesOfTheThreadAreAfterwardsAsBefore() {
        MDC.put("ratelimit.policy", "mine");
        try {
            PolicyLog.write("one", "denied", () -> assertThat(MDC.getCopyOfContextMap())
                    .containsEntry("ratelimit.policy", "one")
                    .containsEntry("ratelimit.outcome", "denied"));
            assertThat(MDC.getCopyOfContextMap()).isEqualTo(Map.of("ratelimit.policy", "mine"));
        } finally {
            MDC.clear();
        }
    }

    private ConfigurableApplicationContext start(Class<?>... sources) {
        return new SpringApplicationBuilder(TestServer.Application.class)
                .sources(sources)
                .run("--spring.config.location=" + directory + "/", "--server.port=0");
    }

    /** Spring Boot keeps the format in a system property for all applications of the process. */
    private void resetLogging() throws IOException {
        System.clearProperty(LoggingSystemProperty.CONSOLE_STRUCTURED_FORMAT.getEnvironmentVariableName());
        configure("ratelimit.enabled: false\n");
        start().close();
    }

    private void configure(String yaml) throws IOException {
        String open = "spring.autoconfigure.exclude: " + WithoutSecurity.EXCLUDED;
        Files.writeString(directory.resolve("application.yml"), yaml + open);
    }

    private static Map<String, Object> fields(CapturedOutput output, String message) {
        List<String> lines = output.getOut()
                .lines()
                .filter(line -> line.startsWith("{") && line.contains(message))
                .toList();
        assertThat(lines).as(message).isNotEmpty();
        Map<String, Object> line = JsonPath.read(lines.get(0), "$");
        Map<String, Object> found = new HashMap<>();
        if (line.get("ratelimit") instanceof Map<?, ?> nested) {
            nested.forEach((name, value) -> found.put(name.toString(), value));
        }
        for (String name : List.of("policy", "outcome")) {
            if (line.containsKey("ratelimit." + name)) {
                found.put(name, line.get("ratelimit." + name));
            }
        }
        return found;
    }

    @RestController
    static class Api {

        @GetMapping({"/one", "/two", "/three"})
        String get() {
            return "";
        }
    }
}
