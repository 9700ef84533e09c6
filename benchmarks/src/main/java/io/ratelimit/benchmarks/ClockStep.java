package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;

/** The three ways in which a bucket counts time, each with a rate that outlasts a run and one that never comes back. */
public enum ClockStep {
    /** One nanosecond: the common case. */
    NANOSECOND("1000000/1s", "1/1d", Refill.GREEDY),
    /** One microsecond: a rate that no tick of a nanosecond fits. */
    MICROSECOND("101/10ms", "101/100d", Refill.GREEDY),
    /** A period: interval refill. */
    PERIOD("1000000/1s", "1/1d", Refill.INTERVAL);

    /** More than any run takes. */
    static final long PLENTY = 1_000_000_000_000L;

    private final String fast;
    private final String slow;
    private final Refill refill;

    ClockStep(String fast, String slow, Refill refill) {
        this.fast = fast;
        this.slow = slow;
        this.refill = refill;
    }

    /** A bucket of this spec allows all calls of a run. */
    BucketSpec plenty() {
        return new BucketSpec(Rate.of(fast), PLENTY, refill);
    }

    /** A bucket of this spec denies all calls of a run but the first. */
    BucketSpec one() {
        return new BucketSpec(Rate.of(slow), 1, refill);
    }
}
