package io.ratelimit.benchmarks;

import static io.ratelimit.benchmarks.Markdown.number;
import static io.ratelimit.benchmarks.Markdown.ratio;

import java.util.List;
import java.util.Locale;

/**
 * The results about many buckets as text.
 *
 * @param cold a decision by {@link KeyedLimiter} and the number of keys
 * @param touched the same, with the heap touched before the run
 */
record KeysResults(List<Measurement> cold, List<Measurement> touched) {

    void write(Markdown text) {
        text.table(
                "Many keys, two threads",
                "keys, limiter, order",
                "ns",
                "±",
                "to the map of longs",
                "bytes",
                "ns, heap touched before",
                "to the map of longs");
        for (Measurement one : cold) {
            Measurement warm =
                    Measurement.of(touched, one.name(), one.parameters().toArray());
            text.row(
                    String.join(", ", one.parameters()).toLowerCase(Locale.ROOT),
                    number(one.nanos(), 1),
                    number(one.error(), 1),
                    ratio(toMapOfLongs(one, cold)),
                    number(one.bytes(), 0),
                    number(warm.nanos(), 1),
                    ratio(toMapOfLongs(warm, touched)));
        }
    }

    private static double toMapOfLongs(Measurement one, List<Measurement> all) {
        return one.ratioTo(Measurement.of(
                all,
                one.name(),
                one.parameters().get(0),
                KeyedLimiter.MAP_OF_LONGS,
                one.parameters().get(2)));
    }
}
