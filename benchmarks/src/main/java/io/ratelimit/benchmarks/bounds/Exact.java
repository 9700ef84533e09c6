package io.ratelimit.benchmarks.bounds;

import java.util.ArrayList;
import java.util.List;

/** What one exact bucket grants to callers who ask for more than it has, during some spans of time. */
final class Exact {

    private record Span(long from, long to) {}

    private final List<Span> spans = new ArrayList<>();

    void asked(long from, long to) {
        spans.add(new Span(from, to));
    }

    /** Returns the tokens, from a full bucket at the beginning of the first span. */
    double granted(Limits limits) {
        double granted = 0;
        double left = limits.capacityAt(spans.get(0).from);
        long time = spans.get(0).from;
        for (Span span : spans) {
            left = Math.min(limits.capacityAt(span.from), left + limits.refill(time, span.from));
            granted += left + limits.refill(span.from, span.to);
            left = 0;
            time = span.to;
        }
        return granted;
    }
}
