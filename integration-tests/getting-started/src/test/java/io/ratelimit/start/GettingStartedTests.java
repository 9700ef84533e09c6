package io.ratelimit.start;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.platform.launcher.listeners.TestExecutionSummary;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * Does what {@code docs/getting-started.md} says, from its top to its end: writes each file to the place named before it, starts
 * the application on Tomcat, and compares what each command prints with what is below it.
 */
@Tag("slow")
class GettingStartedTests {

    private static final Path PAGE = Path.of("../../docs/getting-started.md");
    private static final Pattern STEP =
            Pattern.compile("(?ms)`(src/[\\w/.]+)`|^```(\\w+)$\\R(.*?)^```$|http://localhost:8080(/\\S*)");
    private static final Pattern COMMAND = Pattern.compile("(?m)^\\$ (.*)$\\R((?:^[^$].*$\\R)*)");

    /** Returns a text without retry times. */
    private static String withoutTimes(String text) {
        return text.replaceAll("(Retry-After: |;t=)\\d+", "$1…");
    }

    @TempDir
    private Path directory;

    private EmptyProject project;
    private ConfigurableApplicationContext application;
    private String file = "";
    private int commands;

    @BeforeEach
    void makeTheApplication() throws IOException {
        boolean curl =
                Stream.of(System.getenv("PATH").split(":")).anyMatch(path -> Files.isExecutable(Path.of(path, "curl")));
        assumeTrue(curl, "curl is not installed");
        project = EmptyProject.in(directory);
    }

    @AfterEach
    void stop() {
        if (application != null) {
            application.close();
            application = null;
        }
    }

    @Test
    void thePageWorks() throws Exception {
        for (MatchResult step : STEP.matcher(Files.readString(PAGE)).results().toList()) {
            if (step.group(1) != null) {
                file = step.group(1);
            } else if (step.group(4) != null) {
                assertThat(run("curl -sL -o /dev/null -w '%{http_code}' -u alice:alice localhost:8080" + step.group(4)))
                        .isEqualTo("200");
            } else {
                follow(step.group(2), step.group(3));
            }
        }
        assertThat(commands).isGreaterThan(5);
    }

    private void follow(String language, String block) throws Exception {
        switch (language) {
            case "java", "yaml" -> {
                assertThat(file).endsWith(language);
                project.write(file, block);
                stop();
            }
            case "console" -> compare(block);
            case "sh" -> {
                if (block.contains("./mvnw test")) {
                    TestExecutionSummary summary = project.test();
                    assertThat(summary.getFailures()).isEmpty();
                    assertThat(summary.getTestsSucceededCount()).isEqualTo(1);
                }
            }
            default -> assertThat(language).isEqualTo("xml");
        }
    }

    /** A block with a command whose output is longer contains some lines of it. */
    private void compare(String block) throws Exception {
        for (MatchResult command : COMMAND.matcher(block).results().toList()) {
            List<String> printed = withoutTimes(run(command.group(1)))
                    .lines()
                    .map(String::strip)
                    .toList();
            List<String> expected = withoutTimes(command.group(2)).lines().toList();
            if (command.group(1).startsWith("curl -si")) {
                assertThat(printed).containsSubsequence(expected);
            } else {
                assertThat(printed).isEqualTo(expected);
            }
        }
    }

    private String run(String command) throws Exception {
        if (application == null) {
            application = project.start();
        }
        commands++;
        int port = ((WebServerApplicationContext) application).getWebServer().getPort();
        Process shell = new ProcessBuilder("bash", "-c", command.replace("localhost:8080", "localhost:" + port))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String printed = new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(shell.waitFor()).as(command).isZero();
        return printed;
    }
}
