package io.ratelimit.logging;

import io.ratelimit.ThrottleListener;
import io.ratelimit.TimeSource;
import io.ratelimit.key.FailureListener;
import java.util.List;

/** The log of all policies: their denials, their changes, and facts of requests that they can't determine. */
public final class PolicyLog {

    private PolicyLog() {}

    /**
     * Returns the listeners that log denials and changes.
     *
     * @param time the clock of the pauses between lines
     */
    public static List<ThrottleListener> listeners(TimeSource time) {
        return List.of(new DenialLog(time), new ReconfigurationLog());
    }

    /**
     * Returns the listener that logs failures.
     *
     * @param time the clock of the pauses between lines
     */
    public static FailureListener failures(TimeSource time) {
        return new FailureLog(time)::failed;
    }
}
