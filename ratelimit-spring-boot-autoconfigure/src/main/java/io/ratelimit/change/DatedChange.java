package io.ratelimit.change;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A change of a limit, with its time. The text of a change for all instances is
 * {@code rate=600/1m capacity=800 since=2026-11-22T14:00:00Z}, and {@code until=…} if it ends. The manner of refill is that
 * of each instance's configuration.
 *
 * @param until the time at which the change ends; null for none
 */
record DatedChange(BucketSpec spec, Instant since, @Nullable Instant until, boolean forAll) {

    private static final Duration MAX_DURATION = Duration.ofDays(3650);

    /** @throws IllegalArgumentException if the text isn't a change */
    static DatedChange of(String text, BucketSpec configured) {
        Map<String, String> values = new HashMap<>();
        for (String part : text.split(" ", -1)) {
            int equals = part.indexOf('=');
            if (equals < 0 || values.put(part.substring(0, equals), part.substring(equals + 1)) != null) {
                throw new IllegalArgumentException("'" + part + "' is not 'name=value', or occurs twice");
            }
        }
        Set<String> names = new HashSet<>(values.keySet());
        names.remove("until");
        boolean hasInFlight = names.remove("in-flight");
        if (!names.equals(Set.of("rate", "capacity", "since")) && !(hasInFlight && names.equals(Set.of("since")))) {
            throw new IllegalArgumentException("it must have 'rate', 'capacity' and 'since', and may have 'until'");
        }
        try {
            String until = values.get("until");
            return new DatedChange(
                    LimitChange.of(values.get("rate"), values.get("capacity"), values.get("in-flight"))
                            .apply(configured),
                    Instant.parse(values.get("since")),
                    until == null ? null : Instant.parse(until),
                    true);
        } catch (DateTimeException malformed) {
            throw new IllegalArgumentException(malformed.getMessage(), malformed);
        }
    }

    boolean isPast(Instant now) {
        return until != null && !until.isAfter(now);
    }

    String text() {
        return (spec.hasRate() ? "rate=" + spec.rate() + " capacity=" + spec.capacity() + " " : "")
                + (spec.inFlight() > 0 ? "in-flight=" + spec.inFlight() + " " : "") + "since=" + since
                + (until == null ? "" : " until=" + until);
    }

    /**
     * Returns the end of a change.
     *
     * @param until a time with its offset, or a duration from now
     * @param place the place with the clock, such as Redis
     * @throws IllegalArgumentException if the text is neither, or the end isn't in the ten years from now
     */
    static Instant end(String until, Instant now, String place) {
        Instant end;
        try {
            end = until.contains(":") || until.contains("-")
                    ? OffsetDateTime.parse(until).toInstant()
                    : now.plus(Rate.parseDuration(until));
        } catch (DateTimeException | ArithmeticException | IllegalArgumentException unreadable) {
            throw new IllegalArgumentException(
                    "until must be a time with its offset, such as '2026-11-22T18:00:00Z', or a duration from now,"
                            + " such as '2h'");
        }
        if (!end.isAfter(now) || end.isAfter(now.plus(MAX_DURATION))) {
            throw new IllegalArgumentException("until must be after the time of " + place + ", " + now
                    + ", and at most ten years later, but was " + end);
        }
        return end;
    }

    /** A change of a spec to a new rate, a new capacity, another number of calls in flight, or several of them. */
    record LimitChange(
            @Nullable Rate rate,
            @Nullable Long capacity,
            @Nullable Integer inFlight) {

        private static final int MAX_CAPACITY_DIGITS = 13;
        private static final int MAX_RATE_LENGTH = 64;

        /** @throws IllegalArgumentException if all are null, or one is invalid */
        static LimitChange of(@Nullable String rate, @Nullable String capacity, @Nullable String inFlight) {
            if (rate == null && capacity == null && inFlight == null) {
                throw new IllegalArgumentException(
                        "the body must contain a rate, a capacity or both, such as {\"rate\": \"100/1s\","
                                + " \"capacity\": 200}, or an inFlight");
            }
            return new LimitChange(
                    rate == null ? null : parseRate(rate),
                    capacity == null ? null : parseWhole("capacity", "1,000,000,000,000", capacity),
                    inFlight == null
                            ? null
                            : (int) Math.min(Integer.MAX_VALUE, parseWhole("inFlight", "1,000,000", inFlight)));
        }

        /** Parses a rate of limited length, since the message for an invalid rate repeats it. */
        private static Rate parseRate(String text) {
            if (text.length() > MAX_RATE_LENGTH) {
                throw new IllegalArgumentException("rate must be at most " + MAX_RATE_LENGTH
                        + " characters long, such as '100/1s', but was " + text.length());
            }
            return Rate.of(text);
        }

        private static long parseWhole(String name, String max, String text) {
            boolean whole = !text.isEmpty()
                    && text.length() <= MAX_CAPACITY_DIGITS
                    && text.chars().allMatch(c -> c >= '0' && c <= '9');
            if (!whole) {
                throw new IllegalArgumentException(name + " must be a whole number between 1 and " + max);
            }
            return Long.parseLong(text);
        }

        /** @throws IllegalArgumentException if the spec has no such limit, or the changed limit is out of its range */
        BucketSpec apply(BucketSpec spec) {
            if (!spec.hasRate() && (rate != null || capacity != null)) {
                throw new IllegalArgumentException(
                        "the limit has no rate and no capacity: its 'inFlight' can be changed");
            }
            if (spec.inFlight() == 0 && inFlight != null) {
                throw new IllegalArgumentException(
                        "the limit has no 'inFlight' that could be changed: set 'in-flight' in the configuration");
            }
            BucketSpec changed = bucket(spec);
            return inFlight == null ? changed : changed.withInFlight(inFlight);
        }

        private BucketSpec bucket(BucketSpec spec) {
            if (rate != null) {
                return capacity == null ? spec.withRate(rate) : spec.with(rate, capacity);
            }
            return capacity == null ? spec : spec.withCapacity(capacity);
        }
    }
}
