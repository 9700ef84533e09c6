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
class RedisMeasurementTests {

    @TempDir
    Path directory;

    @Test
    void everybodyIsMeasuredOnceAndHasAPlaceInTheText() throws Exception {
        Path file = directory.resolve("redis.tsv");
        try (OutputStream out = Files.newOutputStream(file)) {
            new RedisMeasurement(1, 20, 100, new PrintStream(out, true, StandardCharsets.UTF_8)).run();
        }
        assertThat(Samples.read(file).variants()).hasSize(4 + 3 * 3 * RedisLimiters.NAMES.size() + 2);
        assertThat(Results.read(directory).toMarkdown())
                .containsPattern("a trivial EVALSHA \\| 10,000 keys: [0-9.]+ × / [0-9.]+ × / [0-9.]+ ×, 10,000 keys by"
                        + " Zipf's law: .*, one key: [0-9.]+ × .*; by a bare script .* [0-9.]+ × \\|")
                .containsPattern(
                        "one key, 32 threads \\| at least 20 × bucket4j \\| [0-9.]+ × \\(Redisson [0-9.]+ ×\\)")
                .containsPattern("lease of 20 ms \\| at least 1,000,000 a second, .* \\| [0-9]+ a second, [0-9.]+ ×")
                .containsPattern("a flood on a drained key \\| .* \\| [0-9.]+ × as many a second; [0-9.]+ commands")
                .containsPattern("beyond its name \\| 140 bytes \\| [0-9]+ bytes")
                .containsPattern("ratelimit, transaction, two policies \\| [0-9]+ \\|");
    }
}
