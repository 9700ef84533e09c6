package io.ratelimit.actuate;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** A new rate, a new capacity or both, in place of those that hold when it is applied. For one use. */
final class LimitChange implements UnaryOperator<BucketSpec> {

    private static final int LONGEST_NUMBER = 13;
    private static final int LONGEST_RATE = 64;

    private final @Nullable Rate rate;
    private final @Nullable Long capacity;
    private @Nullable BucketSpec before;
    private @Nullable BucketSpec after;

    /** @throws IllegalArgumentException if there is neither, or one is not what it must be */
    LimitChange(@Nullable String rate, @Nullable String capacity) {
        if (rate == null && capacity == null) {
            throw new IllegalArgumentException(
                    "say what is to change: {\"rate\": \"100/1s\"}, {\"capacity\": 200} or both");
        }
        this.rate = rate == null ? null : rate(rate);
        this.capacity = capacity == null ? null : capacity(capacity);
    }

    /** The message for what is no rate repeats it. */
    private static Rate rate(String text) {
        if (text.length() > LONGEST_RATE) {
            throw new IllegalArgumentException("rate must be at most " + LONGEST_RATE
                    + " characters long, such as '100/1s', but was " + text.length());
        }
        return Rate.of(text);
    }

    private static long capacity(String text) {
        boolean whole = !text.isEmpty()
                && text.length() <= LONGEST_NUMBER
                && text.chars().allMatch(c -> c >= '0' && c <= '9');
        if (!whole) {
            throw new IllegalArgumentException("capacity must be a whole number between 1 and 1,000,000,000,000");
        }
        return Long.parseLong(text);
    }

    @Override
    public BucketSpec apply(BucketSpec spec) {
        BucketSpec changed = rate != null && capacity != null
                ? new BucketSpec(rate, capacity, spec.refill())
                : rate != null ? spec.withRate(rate) : spec.withCapacity(Objects.requireNonNull(capacity));
        before = spec;
        after = changed;
        return changed;
    }

    /** What it was applied to. */
    BucketSpec before() {
        return Objects.requireNonNull(before);
    }

    /** What it made of that. */
    BucketSpec after() {
        return Objects.requireNonNull(after);
    }
}
