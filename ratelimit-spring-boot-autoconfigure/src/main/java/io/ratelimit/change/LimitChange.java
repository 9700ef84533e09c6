package io.ratelimit.change;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A change of a spec to a new rate, a new capacity or both. */
record LimitChange(@Nullable Rate rate, @Nullable Long capacity) {

    private static final int MAX_CAPACITY_DIGITS = 13;
    private static final int MAX_RATE_LENGTH = 64;

    /** @throws IllegalArgumentException if both are null, or one is invalid */
    static LimitChange of(@Nullable String rate, @Nullable String capacity) {
        if (rate == null && capacity == null) {
            throw new IllegalArgumentException(
                    "the body must contain a rate, a capacity or both, such as {\"rate\": \"100/1s\", \"capacity\": 200}");
        }
        return new LimitChange(
                rate == null ? null : parseRate(rate), capacity == null ? null : parseCapacity(capacity));
    }

    /** Parses a rate of limited length, since the message for an invalid rate repeats it. */
    private static Rate parseRate(String text) {
        if (text.length() > MAX_RATE_LENGTH) {
            throw new IllegalArgumentException("rate must be at most " + MAX_RATE_LENGTH
                    + " characters long, such as '100/1s', but was " + text.length());
        }
        return Rate.of(text);
    }

    private static long parseCapacity(String text) {
        boolean whole = !text.isEmpty()
                && text.length() <= MAX_CAPACITY_DIGITS
                && text.chars().allMatch(c -> c >= '0' && c <= '9');
        if (!whole) {
            throw new IllegalArgumentException("capacity must be a whole number between 1 and 1,000,000,000,000");
        }
        return Long.parseLong(text);
    }

    BucketSpec apply(BucketSpec spec) {
        if (rate == null) {
            return spec.withCapacity(Objects.requireNonNull(capacity));
        }
        return capacity == null ? spec.withRate(rate) : spec.with(rate, capacity);
    }
}
