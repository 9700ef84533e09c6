package io.ratelimit.benchmarks;

import static io.ratelimit.benchmarks.Markdown.number;
import static io.ratelimit.benchmarks.Markdown.ratio;

import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;

/** The goals and the measured values, row by row. */
final class Reach {

    private static final Set<KeyedLimiter> PEERS =
            EnumSet.complementOf(EnumSet.of(KeyedLimiter.MAP_OF_LONGS, KeyedLimiter.RATELIMIT));

    private final Results results;

    Reach(Results results) {
        this.results = results;
    }

    void write(Markdown text) {
        text.table("What was to be reached", "work", "at most", "reached");
        bucket(text);
        keys(text, 100_000, ClientKeys.Order.UNIFORM, "1.0 × the map of longs; 3 × as fast as the best peer");
        keys(text, 100_000, ClientKeys.Order.ZIPF, "1.0 × the map of longs; 2 × as fast as the best peer");
        keys(text, 1_000_000, ClientKeys.Order.UNIFORM, "0.8 × the map of longs");
        memory(text);
        filter(text);
        text.row(
                "1,000 policies with disjoint paths, to one",
                "2 ×",
                ratio(disjointPaths(1_000).ratioTo(disjointPaths(1))));
        listener(text);
        demand(text);
        plans(text);
        http(text);
        text.row(
                "start-up",
                "60 ms more than without",
                number(results.startupMillis("ratelimit"), 0) + " ms (bucket4j's starter "
                        + number(results.startupMillis("bucket4j-starter"), 0) + ", Resilience4j "
                        + number(results.startupMillis("resilience4j"), 0) + "); the same classes without a bean "
                        + number(results.startupMillis("classes"), 0));
        text.row(
                "start with 10,000 overrides",
                "3,000 ms",
                number(results.startedAfterMillis("overrides-10000"), 0) + " ms; the same YAML, which nobody reads, "
                        + number(results.startedAfterMillis("yaml-10000"), 0));
        results.redis().reach(text);
        results.database().reach(text);
    }

    private void bucket(Markdown text) {
        text.row(
                "one bucket, one thread, allowed",
                "1.10 × (`nanoTime` + CAS)",
                ratio(one("tryAcquireAllowed", ClockStep.NANOSECOND).ratioTo(one("nanoTimeAndCompareAndSet"))));
        text.row(
                "one bucket, denied, 1 ns ticks, greedy (otherwise)",
                "1.10 × `nanoTime` (1.35 ×)",
                denied(ClockStep.NANOSECOND) + " (1 µs " + denied(ClockStep.MICROSECOND) + ", interval "
                        + denied(ClockStep.PERIOD) + ")");
        Measurement ours = two("tryAcquireAllowed", ClockStep.NANOSECOND);
        text.row(
                "one bucket, two threads, allowed",
                "1.0 × the best peer",
                ratio(ours.ratioTo(two("resilience4jAllowed"))) + " Resilience4j ("
                        + ratio(ours.ratioTo(two("bucket4jWithLockAllowed"))) + " bucket4j with its lock, "
                        + ratio(ours.ratioTo(two("guavaAllowed"))) + " Guava)");
    }

    private String denied(ClockStep step) {
        return ratio(one("tryAcquireDenied", step).ratioTo(one("nanoTime")));
    }

    private void keys(Markdown text, int count, ClientKeys.Order order, String goal) {
        double ours = key(count, KeyedLimiter.RATELIMIT, order);
        double best = PEERS.stream()
                .mapToDouble(peer -> key(count, peer, order))
                .min()
                .orElseThrow();
        text.row(
                "%,d keys, two threads, %s".formatted(count, order.name().toLowerCase(Locale.ROOT)),
                goal,
                ratio(ours / key(count, KeyedLimiter.MAP_OF_LONGS, order)) + "; " + ratio(best / ours) + " as fast");
    }

    private double key(int count, KeyedLimiter limiter, ClientKeys.Order order) {
        return Measurement.of(results.keys().cold(), "decide", count, limiter, order)
                .nanos();
    }

    private void memory(Markdown text) {
        text.row(
                "memory a key beyond the key's own string",
                "130 bytes",
                number(results.memory().median(KeyedLimiter.RATELIMIT.name(), 0), 0) + " bytes (bucket4j in Caffeine: "
                        + number(results.memory().median(KeyedLimiter.BUCKET4J_IN_CAFFEINE.name(), 0), 0) + ")");
        text.row(
                "allocation of a decision of the core, allowed / denied",
                "0 for `tryAcquire`; a `Decision` otherwise",
                bytes("tryAcquire") + "; " + bytes("decide"));
    }

    private String bytes(String method) {
        return number(one(method + "Allowed", ClockStep.NANOSECOND).bytes(), 0) + " / "
                + number(one(method + "Denied", ClockStep.NANOSECOND).bytes(), 0);
    }

    private void filter(Markdown text) {
        Measurement allowed = Measurement.of(results.filter(), "answer", FilterBenchmark.Denied.BY_NONE);
        text.row(
                "the filter, four policies, headers included, allowed",
                "0.70 µs beyond the clock reads, 1,000 bytes",
                number(results.beyondFloor(allowed) / 1000, 2) + " µs, " + number(allowed.bytes(), 0) + " bytes");
    }

    private Measurement disjointPaths(int policies) {
        return Measurement.of(
                results.growth(), "answer", policies, GrowthBenchmark.Growing.POLICIES_WITH_DISJOINT_PATHS);
    }

    private void listener(Markdown text) {
        text.row(
                "meters and keys denied most, for a decision of two policies, allowed / denied",
                "60 ns",
                told("decideAllowed") + " / " + told("decideDenied") + " ns");
    }

    private String told(String decision) {
        return number(
                Results.beyondNone(
                        results.listener(),
                        Measurement.of(results.listener(), decision, Listening.METERS_AND_DENIED_KEYS)),
                0);
    }

    private void demand(Markdown text) {
        text.row(
                "the measurement of demand, for a key outside the sample / inside",
                "15 / 60 ns",
                measured(DemandBenchmark.Measured.OUTSIDE) + " / " + measured(DemandBenchmark.Measured.INSIDE) + " ns");
    }

    private String measured(DemandBenchmark.Measured key) {
        return number(Results.beyondNone(results.demand(), Measurement.of(results.demand(), "decide", key)), 0);
    }

    private void plans(Markdown text) {
        double decided = Measurement.of(results.settle(), "decided").nanos();
        text.row(
                "a settlement above the estimate / below",
                "30 ns more than the decision alone",
                number(Measurement.of(results.settle(), "settledAbove").nanos() - decided, 0) + " / "
                        + number(
                                Measurement.of(results.settle(), "settledBelow").nanos() - decided, 0) + " ns");
        text.row(
                "an equal limit, created anew for each call of a key",
                "1.25 × a decision",
                ratio(planned(OwnLimitBenchmark.Limits.A_NEW_EQUAL_ONE)));
        text.row(
                "another limit at each call of a key",
                "2.5 × a decision",
                ratio(planned(OwnLimitBenchmark.Limits.ANOTHER_EACH_CALL)) + " (refill in batches "
                        + ratio(planned(OwnLimitBenchmark.Limits.ANOTHER_EACH_CALL_IN_BATCHES)) + ")");
    }

    private double planned(OwnLimitBenchmark.Limits limits) {
        return Measurement.of(results.plans(), "decide", limits)
                .ratioTo(Measurement.of(results.plans(), "decide", limits.plain()));
    }

    private void http(Markdown text) {
        text.row(
                "HTTP, all allowed: CPU a request",
                "1.12 × without limits",
                cpu("allowed") + "; the same headers from a filter that limits nothing "
                        + ratio(results.cpu("fixed-allowed")));
        text.row(
                "HTTP, all refused: CPU a request",
                "0.66 × an allowed one without limits",
                cpu("refused") + "; the same answer from a filter that always sends the same rejection "
                        + ratio(results.cpu("fixed-refused")));
    }

    private String cpu(String answer) {
        return ratio(results.cpu("ratelimit-" + answer)) + " (hand-written "
                + ratio(results.cpu("bucket4j-by-hand-" + answer)) + ", Resilience4j "
                + ratio(results.cpu("resilience4j-" + answer)) + ", bucket4j's starter "
                + ratio(results.cpu("bucket4j-starter-" + answer)) + ")";
    }

    private Measurement one(String name, Object... parameters) {
        return Measurement.of(results.oneThread(), name, parameters);
    }

    private Measurement two(String name, Object... parameters) {
        return Measurement.of(results.twoThreads(), name, parameters);
    }
}
