package io.ratelimit.benchmarks;

import java.util.Locale;

/** Text with tables. A number that isn't one is a dash. */
final class Markdown {

    private final StringBuilder text = new StringBuilder();

    Markdown line(String line) {
        text.append(line).append('\n');
        return this;
    }

    /** A heading and the head of a table. */
    Markdown table(String heading, String... columns) {
        line("").line("## " + heading).line("").line("| " + String.join(" | ", columns) + " |");
        return line("|" + "---|".repeat(columns.length));
    }

    Markdown row(String... cells) {
        return line("| " + String.join(" | ", cells) + " |");
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
