package io.ratelimit.benchmarks.bounds;

import io.ratelimit.benchmarks.Machine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What was run, as a file with two tables, and the page and the picture that show them. The page has the tables between two
 * comments.
 */
final class BoundsPage {

    private static final Pattern GENERATED =
            Pattern.compile("(?<=<!-- bounds -->\n).*(?=<!-- /bounds -->)", Pattern.DOTALL);

    private BoundsPage() {}

    /** Writes the lines of {@link Bounds} in a file as another file, and that one into the page and the picture below a directory. */
    public static void main(String[] args) throws IOException {
        List<Cell> cells =
                Files.readAllLines(Path.of(args[0])).stream().map(Cell::of).toList();
        Path results = Path.of(args[1]);
        Files.writeString(results, results(Machine.describe(), cells));
        Path page = Path.of(args[2], "docs/bounds.md");
        List<String> written = Files.readAllLines(results);
        Files.writeString(page, page(Files.readString(page), written));
        Files.writeString(Path.of(args[2], "docs/images/bounds.svg"), picture(written));
    }

    private static String results(String machine, List<Cell> cells) {
        return "# Bounds\n\n" + machine
                + "\n\nWritten by `benchmarks/run bounds`. `docs/bounds.md` explains the rows and columns.\n\n"
                + section(BoundsTable.of(BoundsTable.BEYOND, cells, Cell::tokens))
                + "\n"
                + section(BoundsTable.of(BoundsTable.GRANTED, cells, Cell::percent));
    }

    private static String section(BoundsTable table) {
        return "## " + table.heading() + "\n\n" + table.toMarkdown();
    }

    private static String captioned(BoundsTable table) {
        return table.heading() + ":\n\n" + table.toMarkdown();
    }

    /** Returns the page with the tables of the results. */
    static String page(String page, List<String> results) {
        String generated = captioned(BoundsTable.read(BoundsTable.BEYOND, results))
                + "\n"
                + captioned(BoundsTable.read(BoundsTable.GRANTED, results))
                + "\nMeasured on an " + results.get(2) + ".\n";
        return GENERATED.matcher(page).replaceFirst(Matcher.quoteReplacement(generated));
    }

    static String picture(List<String> results) {
        return BoundsPicture.of(BoundsTable.read(BoundsTable.BEYOND, results));
    }
}
