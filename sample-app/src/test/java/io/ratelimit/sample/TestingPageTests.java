package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The tests that are shown in {@code docs/testing.md}. */
class TestingPageTests {

    private static final Pattern BLOCK = Pattern.compile("(?ms)^```java$\\R(.*?)^```$");
    private static final List<Path> TESTS = List.of(
            Path.of("src/test/java/io/ratelimit/sample/ReportLimitTests.java"),
            Path.of("src/test/java/io/ratelimit/sample/ReportLimitMvcTests.java"),
            Path.of("src/test/java/io/ratelimit/sample/LimitArithmeticTests.java"),
            Path.of("../integration-tests/src/test/java/io/ratelimit/testing/OrderLimitTests.java"));

    @Test
    void allCodeOfThePageIsInATest() throws IOException {
        List<String> blocks = blocks(Path.of("../docs/testing.md"));
        assertThat(blocks).hasSizeGreaterThanOrEqualTo(4);
        assertThat(blocks).allMatch(block -> isInATest(block));
    }

    private static List<String> blocks(Path page) throws IOException {
        return BLOCK.matcher(Files.readString(page))
                .results()
                .map((MatchResult block) -> block.group(1))
                .toList();
    }

    /** A line of dots stands for omitted code. */
    private static boolean isInATest(String block) {
        return Stream.of(block.split("(?m)^…$")).allMatch(TestingPageTests::isPartOfATest);
    }

    private static boolean isPartOfATest(String block) {
        return TESTS.stream().anyMatch(test -> withoutLayout(read(test)).contains(withoutLayout(block)));
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private static String withoutLayout(String code) {
        return code.replaceAll("\\s+", "");
    }
}
