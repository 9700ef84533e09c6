package io.ratelimit.benchmarks;

import static io.ratelimit.benchmarks.Markdown.number;
import static io.ratelimit.benchmarks.Markdown.ratio;

import java.util.List;

/** The results of {@link DatabaseMeasurement} as text. Ratios are medians of the ratios within each round. */
record DatabaseResults(Samples samples) {

    private double ratioOf(String limiter, String to, String keys) {
        return samples.medianRatio(DatabaseMeasurement.name(limiter, keys), DatabaseMeasurement.name(to, keys), 0);
    }

    void reach(Markdown text) {
        text.row(
                "in PostgreSQL, 10,000 keys, 8 threads",
                "at least 0.8 × a bare SELECT and UPDATE, 1.5 × bucket4j",
                ratio(ratioOf(DatabaseLimiters.OURS, DatabaseLimiters.FLOOR, RedisMeasurement.MANY)) + ", "
                        + ratio(ratioOf(DatabaseLimiters.OURS, DatabaseLimiters.BUCKET4J, RedisMeasurement.MANY)));
        text.row(
                "in PostgreSQL, one key, 8 threads, lease of 50 ms",
                "at least 1,000,000 a second",
                number(samples.median(DatabaseMeasurement.name(DatabaseLimiters.LEASE, RedisMeasurement.HOT), 0), 0)
                        + " a second");
    }

    void write(Markdown text) {
        if (samples.variants().isEmpty()) {
            return;
        }
        text.line("").line("## In a local PostgreSQL").line("");
        text.line(
                "PostgreSQL and the calling threads share the processors of the machine. All use unlogged tables with a fill");
        text.line("factor of 50, asynchronous commits and eight connections, bucket4j by HikariCP.");
        for (String keys : List.of(RedisMeasurement.MANY, RedisMeasurement.HOT)) {
            text.table(
                    "In a local PostgreSQL, " + keys + ", 8 threads",
                    "limiter",
                    "calls a second",
                    "±",
                    "to the bare SELECT and UPDATE",
                    "median, µs",
                    "p99, µs",
                    "failed");
            for (String limiter : DatabaseLimiters.NAMES) {
                String name = DatabaseMeasurement.name(limiter, keys);
                text.row(
                        limiter,
                        number(samples.median(name, 0), 0),
                        number(samples.spread(name, 0), 0),
                        ratio(ratioOf(limiter, DatabaseLimiters.FLOOR, keys)),
                        number(samples.median(name, 1), 0),
                        number(samples.median(name, 2), 0),
                        number(samples.median(name, 3), 0) + " %");
            }
        }
    }
}
