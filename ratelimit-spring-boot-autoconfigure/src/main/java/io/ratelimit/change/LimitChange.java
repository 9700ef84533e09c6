package io.ratelimit.change;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * A change of a spec to a new rate, a new capacity or both. An instance is applied once, and then returns the specs before
 * and after the change.
 */
public final class LimitChange implements UnaryOperator<BucketSpec> {

    private static final int MAX_CAPACITY_DIGITS = 13;
    private static final int MAX_RATE_LENGTH = 64;

    private final @Nullable Rate rate;
    private final @Nullable Long capacity;
    private @Nullable BucketSpec before;
    private @Nullable BucketSpec after;

    /** @throws IllegalArgumentException if both are null, or one is invalid */
    public LimitChange(@Nullable String rate, @Nullable String capacity) {
        if (rate == null && capacity == null) {
            throw new IllegalArgumentException(
                    "the body must contain a rate, a capacity or both, such as {\"rate\": \"100/1s\", \"capacity\": 200}");
        }
        this.rate = rate == null ? null : rate(rate);
        this.capacity = capacity == null ? null : capacity(capacity);
    }

    /** Parses a rate of limited length, since the message for an invalid rate repeats it. */
    private static Rate rate(String text) {
        if (text.length() > MAX_RATE_LENGTH) {
            throw new IllegalArgumentException("rate must be at most " + MAX_RATE_LENGTH
                    + " characters long, such as '100/1s', but was " + text.length());
        }
        return Rate.of(text);
    }

    private static long capacity(String text) {
        boolean whole = !text.isEmpty()
                && text.length() <= MAX_CAPACITY_DIGITS
                && text.chars().allMatch(c -> c >= '0' && c <= '9');
        if (!whole) {
            throw new IllegalArgumentException("capacity must be a whole number between 1 and 1,000,000,000,000");
        }
        return Long.parseLong(text);
    }

    @Override
    public BucketSpec apply(BucketSpec spec) {
        BucketSpec changed = rate != null && capacity != null
                ? spec.with(rate, capacity)
                : rate != null ? spec.withRate(rate) : spec.withCapacity(Objects.requireNonNull(capacity));
        before = spec;
        after = changed;
        return changed;
    }

    /** Returns the spec that the change was applied to. */
    public BucketSpec before() {
        return Objects.requireNonNull(before);
    }

    /** Returns the changed spec. */
    public BucketSpec after() {
        return Objects.requireNonNull(after);
    }
}
