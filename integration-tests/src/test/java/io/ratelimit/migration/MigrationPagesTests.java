package io.ratelimit.migration;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The code of the pages is the code of these tests, and the tests read each configuration from its page. */
class MigrationPagesTests {

    private static final Path SOURCES = Path.of("src/test/java/io/ratelimit/migration");

    static Stream<MigrationPage> pages() {
        return MigrationPage.all().stream().filter(page -> !page.file().endsWith("README.md"));
    }

    @ParameterizedTest
    @MethodSource("pages")
    void eachExampleIsTested(MigrationPage page) {
        String tests = sources();
        assertThat(page.blocks()).hasSizeGreaterThanOrEqualTo(3).allSatisfy(block -> {
            assertThat(block.label()).as(block.text()).isIn("before", "after");
            String[] expected = block.language().equals("java")
                    ? block.text().split("\\R\\R")
                    : new String[] {".%s(\"%s\")".formatted(block.label(), block.heading())};
            assertThat(expected).allMatch(code -> tests.contains(withoutLayout(code)));
        });
    }

    private static String sources() {
        try (Stream<Path> files = Files.list(SOURCES)) {
            StringBuilder all = new StringBuilder();
            for (Path file : files.filter(file -> !file.endsWith("MigrationPagesTests.java"))
                    .toList()) {
                all.append(Files.readString(file));
            }
            return withoutLayout(all.toString());
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    private static String withoutLayout(String code) {
        return code.replaceAll("\\s+", "");
    }
}
