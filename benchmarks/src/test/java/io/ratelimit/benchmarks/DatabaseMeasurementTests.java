package io.ratelimit.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

@Tag("slow")
class DatabaseMeasurementTests {

    @TempDir
    Path directory;

    @Test
    void everybodyIsMeasuredOnceAndHasAPlaceInTheText() throws Exception {
        Path file = directory.resolve("database.tsv");
        try (OutputStream out = Files.newOutputStream(file)) {
            new DatabaseMeasurement(1, 50, 100, new PrintStream(out, true, StandardCharsets.UTF_8)).run();
        }
        assertThat(Samples.read(file).variants()).hasSize(2 * DatabaseLimiters.NAMES.size());
        assertThat(Results.read(directory).toMarkdown())
                .containsPattern("SELECT and UPDATE, 1.5 × bucket4j \\| [0-9.]+ ×, [0-9.]+ ×")
                .containsPattern("lease of 50 ms \\| at least 1,000,000 a second \\| [0-9]+ a second")
                .containsPattern("\\| ratelimit, jdbc, lease of 50 ms \\| [0-9]+ \\|");
    }
}
