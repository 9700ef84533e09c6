package io.ratelimit;

import io.ratelimit.BucketSpec.Refill;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A limit of {@link Vectors}.
 *
 * @param parts the parts of a token: without a calendar, its milliseconds; with a calendar, one
 * @param calendar the calendar of the periods, or null
 */
record VectorLimit(
        long tokens,
        long parts,
        long capacity,
        boolean batches,
        @Nullable VectorCalendar calendar) {

    private static final String SPEC = "{\"tokens\":%d,\"period\":%d,\"capacity\":%d,\"refill\":\"%s\"%s}";

    BucketSpec spec() {
        Rate rate = new Rate(tokens, Duration.ofMillis(millis()));
        BucketSpec spec = new BucketSpec(rate, capacity, batches ? Refill.INTERVAL : Refill.GREEDY);
        return calendar == null ? spec : spec.withCalendar(calendar.zone());
    }

    VectorLimit withCapacity(long capacity) {
        return new VectorLimit(tokens, parts, capacity, batches, calendar);
    }

    /** Returns the milliseconds of a period. */
    long millis() {
        return calendar == null ? period() : calendar.millis();
    }

    /** Returns the parts of a period's tokens. */
    long period() {
        return tokens * parts;
    }

    /** Returns about the milliseconds in which a token comes. */
    long pace() {
        return millis() / tokens;
    }

    /** Returns the milliseconds from empty to full. */
    long toFull() {
        return batches ? (capacity + tokens - 1) / tokens * millis() : capacity * parts;
    }

    long number(long at) {
        return calendar == null ? at / period() : calendar.number(at);
    }

    long begin(long number) {
        return calendar == null ? number * period() : calendar.begin(number);
    }

    String json(long until) {
        String refill = calendar != null ? "calendar" : batches ? "interval" : "greedy";
        String periods = calendar == null ? "" : calendar.json(until);
        return SPEC.formatted(tokens, millis(), capacity, refill, periods);
    }
}
