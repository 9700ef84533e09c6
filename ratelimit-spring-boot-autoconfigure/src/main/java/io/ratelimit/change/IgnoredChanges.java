package io.ratelimit.change;

import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * The changes for all instances that this instance doesn't follow. Each is logged once, and at most five in ten seconds, as
 * another client of the shared place may write any number. For one thread at a time.
 */
final class IgnoredChanges {

    private static final Log logger = LogFactory.getLog(LimitChanges.class);

    private static final long PERIOD_NANOS = Duration.ofSeconds(10).toNanos();
    private static final int MAX_LINES = 5;
    private static final int MAX_LENGTH = 300;

    private final TimeSource time;
    private final Map<String, String> logged = new HashMap<>();
    private long since;
    private int lines;

    IgnoredChanges(TimeSource time) {
        this.time = time;
        this.since = time.nanoTime();
    }

    /** @param reason null if the change is followed */
    void log(String limit, String change, @Nullable String reason) {
        if (reason == null) {
            logged.remove(limit);
        } else if (!change.equals(logged.get(limit)) && mayLog()) {
            logged.put(limit, change);
            logger.warn("The change of '" + printable(limit)
                    + "' for all instances can't be used and is ignored, so the present limit stays: "
                    + printable(reason));
        }
    }

    private boolean mayLog() {
        if (time.nanoTime() - since >= PERIOD_NANOS) {
            since = time.nanoTime();
            lines = 0;
        }
        return lines++ < MAX_LINES;
    }

    /** Forgets the changes of all other limits. */
    void retain(Set<String> limits) {
        logged.keySet().retainAll(limits);
    }

    private static String printable(String text) {
        String cut = text.length() > MAX_LENGTH ? text.substring(0, MAX_LENGTH) + "…" : text;
        return cut.codePoints()
                .map(c -> Character.isISOControl(c) ? '?' : c)
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                .toString();
    }
}
