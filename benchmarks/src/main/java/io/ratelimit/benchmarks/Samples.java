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
import java.util.function.DoubleBinaryOperator;
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
        return quantile(numbers.sorted().toArray(), 0.5);
    }

    /** The value below which this part of the numbers is, between two of them in proportion; NaN if there are none. */
    private static double quantile(double[] sorted, double part) {
        if (sorted.length == 0) {
            return Double.NaN;
        }
        double place = part * (sorted.length - 1);
        int below = (int) place;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
    }

    /** The first and the third quartile. */
    String quartiles(String variant, int column, int digits) {
        return quartiles(sorted(variant, column), digits);
    }

    private static String quartiles(double[] sorted, int digits) {
        return Markdown.number(quantile(sorted, 0.25), digits) + " to "
                + Markdown.number(quantile(sorted, 0.75), digits);
    }

    /** The median of the ratios of what was measured one after the other; not a number if one of them wasn't. */
    double medianRatio(String variant, String to, int column) {
        return median(rounds(variant, to, column, (above, below) -> above / below));
    }

    /** The median of the differences between what was measured one after the other; NaN if one of them wasn't. */
    double medianDifference(String variant, String to, int column) {
        return median(rounds(variant, to, column, (more, less) -> more - less));
    }

    /** The first and the third quartile of these differences. */
    String quartilesOfDifference(String variant, String to, int column, int digits) {
        double[] sorted = rounds(variant, to, column, (more, less) -> more - less)
                .sorted()
                .toArray();
        return quartiles(sorted, digits);
    }

    private DoubleStream rounds(String variant, String to, int column, DoubleBinaryOperator compared) {
        List<double[]> one = byVariant.getOrDefault(variant, List.of());
        List<double[]> other = byVariant.getOrDefault(to, List.of());
        return IntStream.range(0, Math.min(one.size(), other.size()))
                .mapToDouble(round -> compared.applyAsDouble(one.get(round)[column], other.get(round)[column]));
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
