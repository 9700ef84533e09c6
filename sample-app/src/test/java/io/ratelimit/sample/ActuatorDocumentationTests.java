package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.ratelimit.ManualTimeSource;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.json.JsonParser;
import org.springframework.boot.json.JsonParserFactory;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Bean;
import org.springframework.test.annotation.DirtiesContext;

/** Runs the commands of {@code docs/actuator.md}, one after the other: what the last of a block prints is what is below it. */
@Tag("slow")
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@DirtiesContext
class ActuatorDocumentationTests {

    private static final Path PAGE = Path.of("../docs/actuator.md");
    private static final Pattern EXAMPLE = Pattern.compile("(?ms)^```sh$\\R(.*?)^```$\\R^```json$\\R(.*?)^```$");

    @TestConfiguration(proxyBeanMethods = false)
    static class Time {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }
    }

    private final JsonParser json = JsonParserFactory.getJsonParser();
    private final int port;

    ActuatorDocumentationTests(@LocalServerPort int port) {
        this.port = port;
    }

    @BeforeAll
    static void thereIsCurl() {
        boolean curl =
                Stream.of(System.getenv("PATH").split(":")).anyMatch(path -> Files.isExecutable(Path.of(path, "curl")));
        assumeTrue(curl, "curl is not installed");
    }

    @Test
    void theExamplesWork() throws Exception {
        List<MatchResult> examples =
                EXAMPLE.matcher(Files.readString(PAGE)).results().toList();
        assertThat(examples).hasSizeGreaterThan(4);
        for (MatchResult example : examples) {
            String printed = "";
            for (String command : example.group(1).split("\n")) {
                printed = run(command);
            }
            assertThat(withoutHashes(json.parseMap(printed)))
                    .as(example.group(1))
                    .isEqualTo(withoutHashes(json.parseMap(example.group(2))));
        }
    }

    private String run(String command) throws IOException, InterruptedException {
        Process shell = new ProcessBuilder("bash", "-c", command.replace("localhost:8080", "localhost:" + port))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String printed = new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(shell.waitFor()).as(command).isZero();
        return printed;
    }

    /** Returns the response without hashes and times, which differ each time. */
    private static String withoutHashes(Map<String, Object> answer) {
        return new TreeMap<>(answer).toString().replaceAll("(hash|since)=[0-9a-fTZ:.…-]+", "$1");
    }
}
