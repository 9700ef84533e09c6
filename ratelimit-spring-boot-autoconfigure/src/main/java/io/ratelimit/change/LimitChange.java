package io.ratelimit.change;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import org.jspecify.annotations.Nullable;

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
                    "the body must contain a rate, a capacity or both, such as {\"rate\": \"100/1s\", \"capacity\": 200},"
                            + " or an inFlight");
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
            throw new IllegalArgumentException("the limit has no rate and no capacity: its 'inFlight' can be changed");
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
