package io.ratelimit.benchmarks;

import static io.ratelimit.benchmarks.Markdown.number;
import static io.ratelimit.benchmarks.Markdown.ratio;

import io.ratelimit.benchmarks.OwnLimitBenchmark.Limits;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * The measured values as text: the goals, and a table for each group. Values that were not measured are left out, or a
 * dash.
 *
 * @param oneThread one bucket
 * @param twoThreads one bucket
 * @param striped one limit, by the number of threads that take from it
 * @param keys many buckets
 * @param filter requests through the filters
 * @param growth requests through the filters, by the number of policies or mappings
 * @param annotation calls of annotated methods
 * @param listener decisions, by their listeners
 * @param demand decisions, by whether the demand of their keys is measured
 * @param settle decisions, by whether they are settled
 * @param plans decisions, by the limits of the customers
 * @param shared decisions about one limit, by the share that serves them
 * @param sharedDenied denials by one limit, by the number of threads
 * @param memory bytes a key, by {@link KeyedLimiter}
 * @param http microseconds of CPU a request and requests a second, by variant
 * @param shaping bytes a second, and percent off the rate, by what was measured
 * @param shares percent of a limit used, and percent denied of those within their share, by demand and way
 * @param inFlight slots of requests in flight
 * @param startup milliseconds until the application and the process have started, by variant
 * @param redis limits on a local Redis
 * @param database limits in a local PostgreSQL
 */
record Results(
        List<Measurement> oneThread,
        List<Measurement> twoThreads,
        Map<Integer, List<Measurement>> striped,
        KeysResults keys,
        List<Measurement> filter,
        List<Measurement> growth,
        List<Measurement> annotation,
        List<Measurement> listener,
        List<Measurement> demand,
        List<Measurement> settle,
        List<Measurement> plans,
        List<Measurement> shared,
        Map<Integer, List<Measurement>> sharedDenied,
        Samples memory,
        Samples http,
        Samples shaping,
        Samples shares,
        InFlightResults inFlight,
        Samples startup,
        RedisResults redis,
        DatabaseResults database) {

    private static final List<Integer> THREADS = List.of(2, 4, 8);

    /** Reads the files of a directory and writes the text to a file. */
    public static void main(String[] args) throws IOException {
        Files.writeString(Path.of(args[1]), read(Path.of(args[0])).toMarkdown());
    }

    static Results read(Path directory) throws IOException {
        return new Results(
                Measurement.read(directory.resolve("bucket-one-thread.json")),
                Measurement.read(directory.resolve("bucket-two-threads.json")),
                readByThreads(directory, "striped"),
                new KeysResults(
                        Measurement.read(directory.resolve("keys.json")),
                        Measurement.read(directory.resolve("keys-touched.json"))),
                Measurement.read(directory.resolve("filter.json")),
                readGrowth(directory),
                Measurement.read(directory.resolve("annotation.json")),
                Measurement.read(directory.resolve("listener.json")),
                Measurement.read(directory.resolve("demand.json")),
                Measurement.read(directory.resolve("settle.json")),
                Measurement.read(directory.resolve("plans.json")),
                Measurement.read(directory.resolve("shares.json")),
                readByThreads(directory, "shares-denied"),
                Samples.read(directory.resolve("memory.tsv")),
                Samples.read(directory.resolve("http.tsv")),
                Samples.read(directory.resolve("shaping.tsv")),
                Samples.read(directory.resolve("shares.tsv")),
                new InFlightResults(
                        Measurement.read(directory.resolve("slots.json")),
                        Samples.read(directory.resolve("inflight.tsv")),
                        Samples.read(directory.resolve("inflight-http.tsv")),
                        Samples.read(directory.resolve("soak.tsv"))),
                Samples.read(directory.resolve("startup.tsv")),
                new RedisResults(Samples.read(directory.resolve("redis.tsv"))),
                new DatabaseResults(Samples.read(directory.resolve("database.tsv"))));
    }

    private static Map<Integer, List<Measurement>> readByThreads(Path directory, String group) {
        Map<Integer, List<Measurement>> measurements = new TreeMap<>();
        THREADS.forEach(count ->
                measurements.put(count, Measurement.read(directory.resolve(group + "-" + count + "-threads.json"))));
        return measurements;
    }

    private static List<Measurement> readGrowth(Path directory) {
        return Stream.of("growth-request.json", "growth-paths.json", "growth-mappings.json")
                .flatMap(file -> Measurement.read(directory.resolve(file)).stream())
                .toList();
    }

    String toMarkdown() throws IOException {
        Markdown text = new Markdown();
        text.line("# Results").line("").line(Machine.describe()).line("");
        text.line(
                "Written by `benchmarks/run`. Times are medians; ± is JMH's 99.9 % error of the mean, and for rounds half");
        text.line(
                "of the distance between the least and the most. Ratios are to the floor in the same run. What wasn't");
        text.line("measured is a dash.");
        new Reach(this).write(text);
        bucket(text, "One bucket, one thread", oneThread);
        bucket(text, "One bucket, two threads", twoThreads);
        striped(text);
        keys.write(text);
        filter(text);
        growth(text);
        annotation(text);
        beyond(text, "The listeners of a decision of two policies", listener, one -> none(listener, one));
        beyond(text, "The measurement of demand, by the key of the decision", demand, one -> none(demand, one));
        beyond(text, "The settlement of a decision", settle, one -> Measurement.of(settle, "decided"));
        beyond(text, "A customer's own limit", plans, this::plainPlan);
        beyond(text, "One limit with guaranteed shares", shared, this::oneBucket);
        sharedDenied(text);
        memory(text);
        http(text);
        shaping(text);
        shares(text);
        inFlight.write(text);
        startup(text);
        redis.write(text);
        database.write(text);
        return text.toString();
    }

    private static void bucket(Markdown text, String heading, List<Measurement> measurements) {
        Measurement denied = Measurement.of(measurements, "nanoTime");
        Measurement allowed = Measurement.of(measurements, "nanoTimeAndCompareAndSet");
        text.table(heading, "call", "ns", "±", "to the floor", "bytes");
        for (Measurement one : measurements) {
            row(text, one, ratio(one.ratioTo(one.name().endsWith("Allowed") ? allowed : denied)));
        }
    }

    private void striped(Markdown text) {
        text.table("One limit, several threads", "load, stripes", "threads", "ns", "±", "to one bucket", "bytes");
        striped.forEach((count, measurements) -> measurements.forEach(one -> text.row(
                String.join(", ", one.parameters()).toLowerCase(Locale.ROOT),
                count.toString(),
                number(one.nanos(), 1),
                number(one.error(), 1),
                ratio(one.ratioTo(Measurement.of(
                        measurements, one.name(), one.parameters().get(0), 0))),
                number(one.bytes(), 0))));
    }

    private static void row(Markdown text, Measurement one, String compared) {
        text.row(one.label(), number(one.nanos(), 1), number(one.error(), 1), compared, number(one.bytes(), 0));
    }

    private void filter(Markdown text) {
        text.table("The filters", "request", "ns", "±", "beyond stubs and clock", "bytes");
        for (Measurement one : filter) {
            row(text, one, one.name().equals("answer") ? number(beyondFloor(one), 0) : "");
        }
        text.note("The bytes where no policy denies: [ALLOCATION.md](ALLOCATION.md).");
    }

    /** Returns the cost of a request through both filters, without the stubs and one clock read for each filter. */
    double beyondFloor(Measurement request) {
        double clock = Measurement.of(filter, "nanoTime").nanos();
        return request.nanos() - Measurement.of(filter, "stubs").nanos() - 2 * clock;
    }

    /** The parameters are how many, and of what. */
    private void growth(Markdown text) {
        text.table(
                "Growth, an allowed request through both filters",
                "of",
                "how many",
                "ns",
                "±",
                "to the fewest",
                "bytes");
        for (Measurement one : growth) {
            Object kind = one.parameters().get(1);
            Measurement fewest = growth.stream()
                    .filter(other -> other.parameters().get(1).equals(kind))
                    .findFirst()
                    .orElse(one);
            text.row(
                    kind.toString().toLowerCase(Locale.ROOT).replace('_', ' '),
                    one.parameters().get(0),
                    number(one.nanos(), 0),
                    number(one.error(), 0),
                    ratio(one.ratioTo(fewest)),
                    number(one.bytes(), 0));
        }
    }

    private void annotation(Markdown text) {
        text.table("Annotated methods", "call", "ns", "±", "beyond the proxy alone", "bytes");
        double proxied = Measurement.of(annotation, "proxied").nanos();
        for (Measurement one : annotation) {
            row(text, one, number(one.nanos() - proxied, 0));
        }
    }

    /** @param base returns the decision that another one is compared with */
    private static void beyond(
            Markdown text, String title, List<Measurement> decisions, UnaryOperator<Measurement> base) {
        text.table(title, "decision", "ns", "±", "beyond the plain decision", "to it", "bytes");
        for (Measurement one : decisions) {
            text.row(
                    one.label(),
                    number(one.nanos(), 1),
                    number(one.error(), 1),
                    number(one.nanos() - base.apply(one).nanos(), 0),
                    ratio(one.ratioTo(base.apply(one))),
                    number(one.bytes(), 0));
        }
    }

    private Measurement plainPlan(Measurement one) {
        Limits limits = Limits.valueOf(one.parameters().get(0));
        return Measurement.of(plans, "decide", limits.plain());
    }

    private Measurement oneBucket(Measurement one) {
        SharesBenchmark.Way way = SharesBenchmark.Way.valueOf(one.parameters().get(0));
        return Measurement.of(shared, "decide", way.plain());
    }

    private void sharedDenied(Markdown text) {
        text.table("Denials of one limit, several threads", "limit", "threads", "ns", "±", "to one bucket", "bytes");
        sharedDenied.forEach((count, measurements) -> measurements.forEach(one -> text.row(
                one.parameters().get(0).equals(SharesBenchmark.Way.DENIED.name()) ? "guaranteed shares" : "one bucket",
                count.toString(),
                number(one.nanos(), 1),
                number(one.error(), 1),
                ratio(one.ratioTo(Measurement.of(measurements, one.name(), SharesBenchmark.Way.ONE_BUCKET_DENIED))),
                number(one.bytes(), 0))));
    }

    private static Measurement none(List<Measurement> decisions, Measurement decision) {
        return Measurement.of(decisions, decision.name(), Listening.NONE);
    }

    /** Returns the nanoseconds that the listeners add to a decision. */
    static double beyondNone(List<Measurement> decisions, Measurement decision) {
        return decision.nanos() - none(decisions, decision).nanos();
    }

    private void memory(Markdown text) {
        text.table("Memory of a million idle keys", "limiter", "bytes a key beside its text");
        for (String limiter : memory.variants()) {
            text.row(limiter.toLowerCase(Locale.ROOT), number(memory.median(limiter, 0), 0));
        }
    }

    private void http(Markdown text) {
        text.table("HTTP", "variant", "CPU µs a request", "quartiles", "to no limits", "requests a second");
        for (String variant : http.variants()) {
            text.row(
                    variant,
                    number(http.median(variant, 0), 1),
                    http.quartiles(variant, 0, 1),
                    ratio(cpu(variant)),
                    number(http.median(variant, 1), 0));
        }
        text.note(
                "The CPU is that of the process without the threads of the JIT compiler. `fixed-allowed` and `fixed-refused`"
                        + " are the floor: the headers, and the refusal, of `ratelimit` from a filter that limits nothing.");
    }

    /** The CPU of a request, to that of one without limits. */
    double cpu(String variant) {
        return http.medianRatio(variant, "without", 0);
    }

    private void shares(Markdown text) {
        text.table("One limit, 20 tenants", "demand, way", "% of the limit used", "% denied within their share");
        for (String variant : shares.variants()) {
            text.row(variant, number(shares.median(variant, 0), 1), number(shares.median(variant, 1), 1));
        }
    }

    private void shaping(Markdown text) {
        text.table("Shaped streams, ten seconds", "stream", "bytes a second", "% off");
        for (String variant : shaping.variants()) {
            text.row(variant, number(shaping.median(variant, 0), 0), number(shaping.median(variant, 1), 2));
        }
    }

    private void startup(Markdown text) {
        text.table("Start-up", "variant", "ms", "quartiles", "beyond no limits", "quartiles beyond", "process, ms");
        for (String variant : startup.variants()) {
            text.row(
                    variant,
                    number(startup.median(variant, 0), 0),
                    startup.quartiles(variant, 0, 0),
                    number(startupMillis(variant), 0),
                    startup.quartilesOfDifference(variant, "without", 0, 0),
                    number(startup.median(variant, 1), 0));
        }
        text.note("`classes` loads the classes of `ratelimit` and creates none of its beans. "
                + "`yaml-10000` has the YAML of `overrides-10000`, and nobody reads it. They are floors.");
    }

    /** The milliseconds that an application starts later than one without limits. */
    double startupMillis(String variant) {
        return startup.medianDifference(variant, "without", 0);
    }

    double startedAfterMillis(String variant) {
        return startup.median(variant, 0);
    }
}
