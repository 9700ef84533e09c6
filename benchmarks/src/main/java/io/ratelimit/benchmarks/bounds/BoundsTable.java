package io.ratelimit.benchmarks.bounds;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A table with a row for each limiter and a column for each situation.
 *
 * @param heading above the table
 * @param rows the cells by the limiter, in the order of the situations
 */
record BoundsTable(String heading, Map<String, List<String>> rows) {

    static final String BEYOND = "Tokens beyond the limit";
    static final String GRANTED = "Granted, of what one exact bucket grants";

    static BoundsTable of(String heading, List<Cell> cells, Function<Cell, String> text) {
        Map<String, List<String>> rows = new LinkedHashMap<>();
        for (Subject subject : Subject.values()) {
            rows.put(
                    subject.id(),
                    Arrays.stream(Situation.values())
                            .map(situation -> cells.stream()
                                    .filter(cell -> cell.limiter().equals(subject.id()))
                                    .filter(cell -> cell.situation().equals(situation.id()))
                                    .map(text)
                                    .findFirst()
                                    .orElse("–"))
                            .toList());
        }
        return new BoundsTable(heading, rows);
    }

    /** Reads a table from the lines of a file. */
    static BoundsTable read(String heading, List<String> lines) {
        Map<String, List<String>> rows = new LinkedHashMap<>();
        lines.stream()
                .skip(lines.indexOf("## " + heading) + 1L)
                .takeWhile(line -> !line.startsWith("## "))
                .filter(line -> line.startsWith("| "))
                .skip(1)
                .forEach(line -> {
                    List<String> row =
                            new ArrayList<>(Arrays.asList(line.substring(2).split(" *\\| *")));
                    rows.put(row.remove(0), row);
                });
        return new BoundsTable(heading, rows);
    }

    String toMarkdown() {
        String head = Stream.concat(
                        Stream.of("limiter"), Arrays.stream(Situation.values()).map(Situation::id))
                .collect(Collectors.joining(" | ", "| ", " |\n"));
        return head
                + "|" + "---|".repeat(1 + Situation.values().length) + "\n"
                + rows.entrySet().stream()
                        .map(row -> "| " + row.getKey() + " | " + String.join(" | ", row.getValue()) + " |\n")
                        .collect(Collectors.joining());
    }
}
