package io.ratelimit.benchmarks;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The figures that the documentation shows. Each stands between two comments, {@code <!--= heading; row; column; rounding -->} and
 * {@code <!--/-->}, of which the first names a cell of {@code RESULTS.md}. Without a rounding the cell is copied, {@code whole} rounds
 * it to a whole number, and {@code two} to two significant digits. {@code <!--= machine -->} is what was measured on, and when.
 */
final class Figures {

    static final Pattern MARKED = Pattern.compile("(<!--= (.*?) -->)(.*?)(<!--/-->)");

    private final List<String> results;

    private Figures(List<String> results) {
        this.results = results;
    }

    static Figures of(Path results) throws IOException {
        return new Figures(Files.readAllLines(results));
    }

    /** Returns the README and all pages below {@code docs}. */
    static List<Path> pages(Path root) throws IOException {
        try (Stream<Path> pages = Files.walk(root.resolve("docs"))) {
            return Stream.concat(Stream.of(root.resolve("README.md")), pages)
                    .filter(page -> page.toString().endsWith(".md"))
                    .sorted()
                    .toList();
        }
    }

    /** Writes the figures of a file into the pages of a directory. */
    public static void main(String[] args) throws IOException {
        Figures figures = of(Path.of(args[0]));
        for (Path page : pages(Path.of(args[1]))) {
            Files.writeString(page, figures.in(Files.readString(page)));
        }
    }

    /** Returns a page with the present figures. A marker that names no cell is an {@link IllegalArgumentException}. */
    String in(String page) {
        return MARKED.matcher(page)
                .replaceAll(
                        found -> Matcher.quoteReplacement(found.group(1) + figure(found.group(2)) + found.group(4)));
    }

    private String figure(String marker) {
        if (marker.equals("machine")) {
            return results.get(2);
        }
        List<String> parts = List.of(marker.split("; "));
        if (parts.size() < 3) {
            throw new IllegalArgumentException("'" + marker + "' must be 'heading; row; column'");
        }
        String cell = cell(parts.get(0), parts.get(1), parts.get(2));
        return parts.size() == 3 ? cell : rounded(cell, parts.get(3));
    }

    String cell(String heading, String row, String column) {
        int start = results.indexOf("## " + heading);
        List<List<String>> table = results.stream()
                .skip(start + 1L)
                .takeWhile(line -> start >= 0 && !line.startsWith("## "))
                .filter(line -> line.startsWith("|"))
                .map(line -> Arrays.stream(line.substring(1).split("\\|"))
                        .map(String::strip)
                        .toList())
                .toList();
        int index = table.isEmpty() ? -1 : table.get(0).indexOf(column);
        return table.stream()
                .filter(cells -> index > 0 && cells.get(0).equals(row))
                .map(cells -> cells.get(index))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(
                        "RESULTS.md has no cell '" + heading + "; " + row + "; " + column + "'"));
    }

    private static String rounded(String cell, String rounding) {
        BigDecimal number = new BigDecimal(cell);
        BigDecimal rounded =
                switch (rounding) {
                    case "whole" -> number.setScale(0, RoundingMode.HALF_UP);
                    case "two" -> number.round(new MathContext(2, RoundingMode.HALF_UP));
                    default ->
                        throw new IllegalArgumentException(
                                "A rounding must be 'whole' or 'two', but was '" + rounding + "'");
                };
        return String.format(Locale.ROOT, "%,.0f", rounded);
    }
}
