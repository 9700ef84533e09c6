package io.ratelimit.benchmarks;

import java.util.Locale;

/** Text with tables. A number that isn't one is a dash, and a table without rows is left out. */
final class Markdown {

    private final StringBuilder text = new StringBuilder();
    private String head = "";

    Markdown line(String line) {
        text.append(line).append('\n');
        return this;
    }

    /** Begins a table. Its heading comes with the first row. */
    void table(String heading, String... columns) {
        head = "\n## " + heading + "\n\n| " + String.join(" | ", columns) + " |\n|" + "---|".repeat(columns.length)
                + "\n";
    }

    void row(String... cells) {
        text.append(head);
        head = "";
        line("| " + String.join(" | ", cells) + " |");
    }

    /** A paragraph about the table before, if it has rows. */
    void note(String note) {
        if (head.isEmpty()) {
            line("").line(note);
        }
    }

    /** A number with so many digits after the point. */
    static String number(double number, int digits) {
        return Double.isNaN(number) ? "–" : String.format(Locale.ROOT, "%." + digits + "f", number);
    }

    static String ratio(double ratio) {
        return Double.isNaN(ratio) ? "–" : number(ratio, 2) + " ×";
    }

    @Override
    public String toString() {
        return text.toString();
    }
}
