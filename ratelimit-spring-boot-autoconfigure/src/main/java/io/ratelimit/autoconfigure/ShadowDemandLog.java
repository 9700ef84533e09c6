package io.ratelimit.autoconfigure;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Suggestion;
import io.ratelimit.demand.DemandListener;
import java.time.Duration;
import java.util.Locale;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.function.Predicate;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Logs once a day, for each policy in shadow mode and each of its tiers, the limit that 99.9 % of the keys would need. A
 * policy with too little traffic has no line. Lines contain no keys. Thread-safe.
 */
final class ShadowDemandLog implements AutoCloseable {

    private static final Log logger = LogFactory.getLog("io.ratelimit.logging.ShadowDemandLog");

    private static final long DAY_NANOS = Duration.ofDays(1).toNanos();
    private static final double TOUCH = 0.001;
    private static final Duration WITHIN = Duration.ofMinutes(1);

    private final Throttlers throttlers;
    private final DemandListener demand;
    private final Predicate<ThrottlePolicy> oneBucket;
    private final TimeSource time;
    private @Nullable Future<?> nextDay;
    private boolean closed;

    /** @param oneBucket whether all calls of a policy share one bucket */
    ShadowDemandLog(
            Throttlers throttlers, DemandListener demand, Predicate<ThrottlePolicy> oneBucket, TimeSource time) {
        this.throttlers = throttlers;
        this.demand = demand;
        this.oneBucket = oneBucket;
        this.time = time;
    }

    public synchronized void start() {
        schedule(time.nanoTime() + DAY_NANOS);
    }

    private void schedule(long due) {
        nextDay = time.maintainAt(due, () -> endDay(due));
    }

    /** Ignores a call before its time: a clock makes all pending calls when it is closed. */
    private synchronized void endDay(long due) {
        if (!closed && time.nanoTime() - due >= 0) {
            throttlers.all().stream()
                    .map(PolicyThrottler::policy)
                    .filter(policy -> policy.mode() == Mode.SHADOW)
                    .forEach(this::log);
            schedule(due + DAY_NANOS);
        }
    }

    @Override
    public synchronized void close() {
        closed = true;
        if (nextDay != null) {
            nextDay.cancel(false);
        }
    }

    private void log(ThrottlePolicy policy) {
        log(policy, null);
        new TreeSet<>(policy.tiers().keySet()).forEach(tier -> log(policy, tier));
    }

    private void log(ThrottlePolicy policy, @Nullable String tier) {
        Demand measured = demand.demand(policy.name(), tier);
        if (measured == null || measured.isTooLittle(oneBucket.test(policy))) {
            return;
        }
        Suggestion needed = measured.suggest(TOUCH, WITHIN);
        if (needed != null) {
            String about = measured.keys() > measured.sample() ? "about " : "";
            String keys = oneBucket.test(policy)
                    ? "its calls"
                    : String.format(
                            Locale.ROOT,
                            "%s %s%,d %s",
                            about.isEmpty() && needed.touched().keys() == 0 ? "all" : "99.9 % of",
                            about,
                            measured.keys(),
                            nameOfKeys(policy));
            PolicyLog.write(
                    policy.name(),
                    null,
                    () -> logger.info("Throttle policy '" + policy.name() + "' is in shadow mode: " + keys
                            + (tier == null ? "" : " in tier '" + tier + "'") + " would need " + needed.spec()));
        }
    }

    private static String nameOfKeys(ThrottlePolicy policy) {
        String only = policy.key().size() == 1 ? policy.key().get(0) : "";
        return only.equals("user") ? "users" : only.equals("ip") ? "addresses" : "keys";
    }
}
