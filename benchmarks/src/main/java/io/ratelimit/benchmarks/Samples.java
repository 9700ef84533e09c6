package io.ratelimit.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/** Repeated measurements of a script: lines with the name of a variant and numbers, separated by tabs. */
final class Samples {

    private final Map<String, List<double[]>> byVariant = new LinkedHashMap<>();

    /** Reads a file; returns no samples if there is none. */
    static Samples read(Path file) throws IOException {
        Samples samples = new Samples();
        if (Files.exists(file)) {
            for (String line : Files.readAllLines(file)) {
                String[] columns = line.split("\t");
                double[] numbers = new double[columns.length - 1];
                for (int i = 0; i < numbers.length; i++) {
                    numbers[i] = Double.parseDouble(columns[i + 1]);
                }
                samples.byVariant
                        .computeIfAbsent(columns[0], name -> new ArrayList<>())
                        .add(numbers);
            }
        }
        return samples;
    }

    /** Returns the variants in the order of their first measurement. */
    Collection<String> variants() {
        return byVariant.keySet();
    }

    /** Returns the median, or NaN if the variant wasn't measured. */
    double median(String variant, int column) {
        return median(Arrays.stream(sorted(variant, column)));
    }

    private static double median(DoubleStream numbers) {
        double[] sorted = numbers.sorted().toArray();
        int middle = sorted.length / 2;
        if (sorted.length == 0) {
            return Double.NaN;
        }
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    /** The median of the ratios of what was measured one after the other; not a number if one of them wasn't. */
    double medianRatio(String variant, String to, int column) {
        List<double[]> above = byVariant.getOrDefault(variant, List.of());
        List<double[]> below = byVariant.getOrDefault(to, List.of());
        return median(IntStream.range(0, Math.min(above.size(), below.size()))
                .mapToDouble(round -> above.get(round)[column] / below.get(round)[column]));
    }

    /** Half of the distance between the least and the most. */
    double spread(String variant, int column) {
        double[] sorted = sorted(variant, column);
        return sorted.length == 0 ? Double.NaN : (sorted[sorted.length - 1] - sorted[0]) / 2;
    }

    private double[] sorted(String variant, int column) {
        return byVariant.getOrDefault(variant, List.of()).stream()
                .mapToDouble(numbers -> numbers[column])
                .sorted()
                .toArray();
    }
}
