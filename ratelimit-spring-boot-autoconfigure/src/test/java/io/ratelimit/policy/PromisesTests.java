package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Each promise of {@code docs/promises.md} has a command that would refute it, and the command finds its tests. */
class PromisesTests {

    private static final Path ROOT = Path.of("..");
    private static final Pattern COMMAND = Pattern.compile(
            "`\\./mvnw -pl ([\\w-]+) -am -Dsurefire\\.failIfNoSpecifiedTests=false -Dtest='?([\\w*,]+)'? test`");

    private final String page = Files.readString(ROOT.resolve("docs/promises.md"));

    PromisesTests() throws IOException {}

    @Test
    void everyPromiseHasItsCommand() {
        List<String> promises = List.of(page.split("(?m)^- (?=\\*\\*)"));

        assertThat(promises).hasSizeGreaterThan(6);
        assertThat(promises.subList(1, promises.size())).allMatch(promise -> promise.contains("  Refute it: `"));
    }

    @Test
    void everyCommandFindsItsTests() throws IOException {
        List<MatchResult> commands = COMMAND.matcher(page).results().toList();
        List<String> tests;
        try (Stream<Path> files =
                Files.find(ROOT, 20, (file, attributes) -> file.toString().endsWith("Tests.java"))) {
            tests = files.map(file -> file.getFileName().toString().replace(".java", ""))
                    .toList();
        }

        assertThat(commands).hasSizeGreaterThanOrEqualTo(6);
        for (MatchResult command : commands) {
            assertThat(ROOT.resolve(command.group(1))).isDirectory();
            assertThat(command.group(2).split(","))
                    .allSatisfy(test -> assertThat(tests).anyMatch(name -> name.matches(test.replace("*", ".*"))));
        }
    }
}
