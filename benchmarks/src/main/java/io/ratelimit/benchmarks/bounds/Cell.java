package io.ratelimit.benchmarks.bounds;

import java.util.Locale;

/**
 * What a limiter did in a situation.
 *
 * @param beyond the tokens that it granted beyond capacity + rate × length, in the worst interval
 * @param granted what it granted, in percent of what one exact bucket grants to the same demand
 * @param obstacle why it wasn't run; empty if it was
 */
record Cell(String limiter, String situation, double beyond, double granted, String obstacle) {

    static Cell notRun(Subject subject, Situation situation, String obstacle) {
        return new Cell(subject.id(), situation.id(), Double.NaN, Double.NaN, obstacle);
    }

    static Cell of(String line) {
        String[] parts = line.split("\t", -1);
        return new Cell(parts[0], parts[1], Double.parseDouble(parts[2]), Double.parseDouble(parts[3]), parts[4]);
    }

    String toLine() {
        return String.join("\t", limiter, situation, Double.toString(beyond), Double.toString(granted), obstacle);
    }

    /** Returns the tokens beyond the limit; a part of a token counts from a tenth on. */
    String tokens() {
        if (!obstacle.isEmpty()) {
            return obstacle;
        }
        String text = String.format(Locale.ROOT, beyond < 9.95 ? "%.1f" : "%,.0f", beyond);
        return text.endsWith(".0") ? text.substring(0, text.length() - 2) : text;
    }

    String percent() {
        return obstacle.isEmpty() ? String.format(Locale.ROOT, "%.0f %%", granted) : obstacle;
    }
}
