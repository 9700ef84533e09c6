package io.ratelimit.actuate.dashboard;

import io.ratelimit.ThrottleListener;
import io.ratelimit.TimeSource;

/** Creates the dashboard's history, which only this package can, for benchmarks. */
public final class MeasuredHistory {

    private MeasuredHistory() {}

    /** Returns the listener that counts decisions. */
    public static ThrottleListener create(TimeSource time) {
        return new DecisionHistory(time);
    }
}
