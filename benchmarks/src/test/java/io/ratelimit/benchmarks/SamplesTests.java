package io.ratelimit.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SamplesTests {

    @TempDir
    Path directory;

    @Test
    void theMedianStandsBesideItsQuartiles() throws IOException {
        Samples samples = read("a\t10", "a\t40", "a\t20", "a\t30");

        assertThat(samples.median("a", 0)).isEqualTo(25);
        assertThat(samples.quartiles("a", 0, 1)).isEqualTo("17.5 to 32.5");
        assertThat(samples.median("b", 0)).isNaN();
        assertThat(samples.quartiles("b", 0, 1)).isEqualTo("– to –");
    }

    @Test
    void whatWasMeasuredInTurnsIsComparedRoundByRound() throws IOException {
        Samples samples = read("without\t100", "with\t110", "without\t200", "with\t230", "without\t300", "with\t320");

        assertThat(samples.medianDifference("with", "without", 0)).isEqualTo(20);
        assertThat(samples.quartilesOfDifference("with", "without", 0, 0)).isEqualTo("15 to 25");
        assertThat(samples.medianRatio("with", "without", 0)).isEqualTo(1.1);
    }

    private Samples read(String... lines) throws IOException {
        Path file = directory.resolve("samples.tsv");
        Files.write(file, List.of(lines));
        return Samples.read(file);
    }
}
