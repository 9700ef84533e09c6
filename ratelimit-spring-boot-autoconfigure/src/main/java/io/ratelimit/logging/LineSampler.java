package io.ratelimit.logging;

import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/** Counts what happens to each policy, and says when there may be a line of it: at once, and then in ten seconds. */
final class LineSampler {

    private static final long PAUSE = Duration.ofSeconds(10).toNanos();

    private final TimeSource time;
    private final Map<String, Tally> tallies = new ConcurrentHashMap<>();

    LineSampler(TimeSource time) {
        this.time = time;
    }

    /** Counts once more; the count since the last line if there may be one now, otherwise 0. */
    long count(String policy) {
        long now = time.nanoTime();
        Tally known = tallies.get(policy);
        Tally tally = known != null ? known : tallies.computeIfAbsent(policy, name -> new Tally(now));
        tally.count.increment();
        long due = tally.due.get();
        return now - due >= 0 && tally.due.compareAndSet(due, now + PAUSE) ? tally.count.sumThenReset() : 0;
    }

    private static final class Tally {
        private final LongAdder count = new LongAdder();
        private final AtomicLong due;

        Tally(long due) {
            this.due = new AtomicLong(due);
        }
    }
}
