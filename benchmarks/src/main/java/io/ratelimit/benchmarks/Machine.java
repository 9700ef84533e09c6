package io.ratelimit.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.stream.Stream;

/** The machine that is measured on. */
public final class Machine {

    private Machine() {}

    /** Returns its processor, system and Java, and the date. */
    public static String describe() throws IOException {
        Path cpus = Path.of("/proc/cpuinfo");
        try (Stream<String> lines = Files.exists(cpus) ? Files.lines(cpus) : Stream.of()) {
            String model = lines.filter(line -> line.startsWith("model name"))
                    .findFirst()
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .orElse(System.getProperty("os.arch"));
            return "%s, %d cores; %s, Java %s; %s"
                    .formatted(
                            model,
                            Runtime.getRuntime().availableProcessors(),
                            System.getProperty("os.name"),
                            Runtime.version(),
                            LocalDate.now());
        }
    }
}
