package io.ratelimit.actuate;

import io.ratelimit.ThrottleListener;
import io.ratelimit.TimeSource;

/** Creates the listeners of the actuator, which only this package can, for benchmarks. */
public final class MeasuredListeners {

    private MeasuredListeners() {}

    /** Returns the listener that counts the decisions of the dashboard. */
    public static ThrottleListener history(TimeSource time) {
        return new DecisionHistory(time);
    }

    /** Returns the listener that counts the keys denied most. */
    public static ThrottleListener deniedKeys(TimeSource time) {
        return new DeniedKeys(time);
    }
}
