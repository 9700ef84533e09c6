package io.ratelimit.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.benchmarks.DemandBenchmark.Measured;
import io.ratelimit.benchmarks.OwnLimitBenchmark.Limits;
import java.nio.file.Path;
import java.util.Collection;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.VerboseMode;

@Tag("slow")
class BenchmarkTests {

    @TempDir
    Path directory;

    @Test
    void everyBenchmarkRunsOnceAndItsResultHasAPlaceInTheText() throws Exception {
        assertThat(run("Bucket.*Benchmark", "bucket-one-thread.json")).hasSize(4 * 3 + 2 + 8);
        assertThat(run("StripedBenchmark", "striped-2-threads.json")).hasSize(2 * 3);
        assertThat(run("KeysBenchmark", "keys.json")).hasSize(2 * KeyedLimiter.values().length);
        assertThat(run("Filter.*Benchmark", "filter.json")).hasSize(3 + 2);
        assertThat(run("GrowthBenchmark", "growth-paths.json")).hasSize(4);
        assertThat(run("AnnotationBenchmark", "annotation.json")).hasSize(4);
        assertThat(run("ListenerBenchmark", "listener.json")).hasSize(2 * Listening.values().length);
        assertThat(run("DemandBenchmark", "demand.json")).hasSize(Measured.values().length);
        assertThat(run("SettleBenchmark", "settle.json")).hasSize(3);
        assertThat(run("OwnLimitBenchmark", "plans.json")).hasSize(Limits.values().length);
        assertThat(run("SlotsBenchmark", "slots.json")).hasSize(KeyedSlots.values().length);

        assertThat(Results.read(directory).toMarkdown())
                .containsPattern("one bucket, one thread, allowed \\| .* \\| [0-9.]+ ×")
                .containsPattern("headers included, allowed \\| .* \\| -?[0-9.]+ µs")
                .containsPattern(
                        "meters and keys denied most, for a decision .* \\| 60 ns \\| -?[0-9.]+ / -?[0-9.]+ ns")
                .containsPattern("policies with disjoint paths \\| 1000 \\| .* \\| 1.00 ×")
                .containsPattern("constantKey \\| .*")
                .containsPattern("\\| 1000, ratelimit, zipf \\| .* \\| [0-9.]+ × \\| .*")
                .containsPattern("allowed, 8 \\| 2 \\| .* \\| [0-9.]+ ×")
                .containsPattern("\\| decide, outside \\| .* \\| [0-9.]+ × \\|")
                .containsPattern("\\| settledBelow \\| .* \\| [0-9.]+ × \\|")
                .containsPattern("\\| decide, each_customers_own \\| .* \\| [0-9.]+ × \\|")
                .containsPattern("\\| 1000, semaphore_in_caffeine \\| .* \\| [0-9.]+ × \\|")
                .contains("start-up | 60 ms more than without | – ms");
    }

    private Collection<RunResult> run(String include, String file) throws RunnerException {
        return new Runner(new OptionsBuilder()
                        .include("\\." + include)
                        .param("count", "1000")
                        .mode(Mode.SingleShotTime)
                        .warmupIterations(0)
                        .measurementIterations(1)
                        .forks(0)
                        .shouldFailOnError(true)
                        .verbosity(VerboseMode.SILENT)
                        .resultFormat(ResultFormatType.JSON)
                        .result(directory.resolve(file).toString())
                        .build())
                .run();
    }
}
