package io.ratelimit.stacks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The code of {@code docs/stacks.md} is that of the tests of its rows. */
class StacksPageTests {

    private static final Path TESTS = Path.of("src/test/java/io/ratelimit/stacks");
    private static final Pattern BLOCK = Pattern.compile("(?ms)^```(?:java|kotlin)$\\R(.*?)^```$");

    @Test
    void theCodeOfThePageIsThatOfTheTests() throws IOException {
        String tests = withoutLayout(Files.readString(TESTS.resolve("WebStacksTests.java"))
                + Files.readString(TESTS.resolve("BackgroundTests.java"))
                + Files.readString(Path.of("kotlin/src/test/kotlin/io/ratelimit/kotlin/Catalog.kt")));
        List<String> blocks = BLOCK.matcher(Files.readString(Path.of("../docs/stacks.md")))
                .results()
                .map(block -> withoutLayout(block.group(1)))
                .toList();

        assertThat(blocks).hasSizeGreaterThanOrEqualTo(4).allSatisfy(code -> assertThat(tests)
                .contains(code));
    }

    private static String withoutLayout(String code) {
        return code.replaceAll("\\s+", "");
    }
}
