package io.ratelimit.logging;

import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.ObjLongConsumer;

/**
 * Counts what happens to each policy, and has a line written of it: at once, and then of what came since, ten seconds after
 * the last. Of everything that is counted there is a line in the end. Thread-safe.
 */
final class LineSampler {

    private static final long PAUSE = Duration.ofSeconds(10).toNanos();

    private final TimeSource time;
    private final ObjLongConsumer<String> line;
    private final Map<String, Tally> tallies = new ConcurrentHashMap<>();

    /** @param line writes it, of a policy by its name and how often it happened since the last */
    LineSampler(TimeSource time, ObjLongConsumer<String> line) {
        this.time = time;
        this.line = line;
    }

    /** Counts once more. */
    void count(String policy) {
        Tally known = tallies.get(policy);
        Tally tally = known != null ? known : tallies.computeIfAbsent(policy, Tally::new);
        tally.count();
    }

    private final class Tally {

        private final String policy;
        private final LongAdder count = new LongAdder();
        private final AtomicLong due = new AtomicLong(time.nanoTime());
        private final AtomicBoolean alarm = new AtomicBoolean();

        Tally(String policy) {
            this.policy = policy;
        }

        /** While an alarm is set, it is what writes the next line: two at a time would come too soon. */
        void count() {
            count.increment();
            if (alarm.get()) {
                return;
            }
            long now = time.nanoTime();
            long seen = due.get();
            if (now - seen >= 0 && due.compareAndSet(seen, now + PAUSE)) {
                write();
            } else if (alarm.compareAndSet(false, true)) {
                time.callAt(due.get(), this::wake);
            }
        }

        /** The alarm is off before it is counted: what comes later sets another. */
        private void wake() {
            due.set(time.nanoTime() + PAUSE);
            alarm.set(false);
            write();
        }

        private void write() {
            long happened = count.sumThenReset();
            if (happened > 0) {
                line.accept(policy, happened);
            }
        }
    }
}
