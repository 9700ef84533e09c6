package io.ratelimit.logging;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Logs denials, at most one line a policy in ten seconds, with the count since the last: a flood of requests must not
 * become a flood of lines. Nothing of a request is in a line.
 */
public final class DenialLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog(DenialLog.class);
    private static final long PAUSE = Duration.ofSeconds(10).toNanos();

    private final TimeSource time;
    private final Map<String, Tally> tallies = new ConcurrentHashMap<>();

    public DenialLog(TimeSource time) {
        this.time = time;
    }

    @Override
    public void decided(Decision decision) {
        if (!decision.allowed()) {
            for (Answer violation : decision.violations()) {
                log(violation.policy());
            }
        }
    }

    private void log(ThrottlePolicy policy) {
        long now = time.nanoTime();
        Tally known = tallies.get(policy.name());
        Tally tally = known != null ? known : tallies.computeIfAbsent(policy.name(), name -> new Tally(now));
        tally.denied.increment();
        long due = tally.due.get();
        if (now - due >= 0 && tally.due.compareAndSet(due, now + PAUSE)) {
            logger.info("Throttle policy '" + policy.name() + "' denied " + tally.denied.sumThenReset()
                    + " since it was last logged"
                    + (policy.mode() == Mode.SHADOW ? "; it is in shadow mode, so none was refused" : ""));
        }
    }

    private static final class Tally {
        private final LongAdder denied = new LongAdder();
        private final AtomicLong due;

        Tally(long due) {
            this.due = new AtomicLong(due);
        }
    }
}
