package io.ratelimit.benchmarks;

import static io.ratelimit.benchmarks.Markdown.number;
import static io.ratelimit.benchmarks.Markdown.ratio;

import java.util.List;
import java.util.Locale;

/**
 * The results about requests in flight as text.
 *
 * @param slots a slot taken and released, by {@link KeyedSlots} and the number of keys
 * @param load slots that three processes share on Redis, by situation and way
 * @param http microseconds of CPU a request and requests a second, with and without a limit in flight beside three rates
 * @param soak requests that end in each way
 */
record InFlightResults(List<Measurement> slots, Samples load, Samples http, Samples soak) {

    void write(Markdown text) {
        text.table(
                "A slot taken and released, one thread", "keys, limiter", "ns", "±", "to the map of counters", "bytes");
        for (Measurement one : slots) {
            text.row(
                    String.join(", ", one.parameters()).toLowerCase(Locale.ROOT),
                    number(one.nanos(), 1),
                    number(one.error(), 1),
                    ratio(toMapOfCounters(one)),
                    number(one.bytes(), 0));
        }
        text.table(
                "Slots of three processes on a local Redis",
                "load, way",
                "calls of Redis a request",
                "% denied",
                "% denied though a slot was free",
                "at most beyond the limit",
                "requests");
        for (String variant : load.variants()) {
            text.row(
                    variant,
                    number(load.median(variant, 0), 2),
                    number(load.median(variant, 1), 1),
                    number(load.median(variant, 2), 1),
                    number(load.median(variant, 3), 0),
                    number(load.median(variant, 4), 0));
        }
        text.table(
                "HTTP, a limit of requests in flight or one rate more beside three rates",
                "variant",
                "CPU µs a request",
                "quartiles",
                "to without it");
        for (String variant : http.variants()) {
            text.row(
                    variant,
                    number(http.median(variant, 0), 1),
                    http.quartiles(variant, 0, 1),
                    number(http.medianRatio(variant, "ratelimit-allowed", 0), 3) + " ×");
        }
        for (String requests : soak.variants()) {
            text.table(
                    "Requests that end in each way", "requests", "rejected", "clients gone", "slots held at the end");
            text.row(
                    requests,
                    number(soak.median(requests, 0), 0),
                    number(soak.median(requests, 1), 0),
                    number(soak.median(requests, 2), 0));
        }
    }

    private double toMapOfCounters(Measurement one) {
        return one.ratioTo(Measurement.of(slots, one.name(), one.parameters().get(0), KeyedSlots.MAP_OF_COUNTERS));
    }
}
