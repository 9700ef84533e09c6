package io.ratelimit.logging;

import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;

/**
 * Counts events and writes a line for them. The first event is written at once. The following ones are written together,
 * ten seconds after the previous line. Each counted event is part of a line in the end. Thread-safe.
 */
final class LineSampler {

    private static final long PAUSE_NANOS = Duration.ofSeconds(10).toNanos();

    private final TimeSource time;
    private final LongConsumer writer;
    private final LongAdder events = new LongAdder();
    private final AtomicLong due;
    private final AtomicBoolean scheduled = new AtomicBoolean();

    /** @param writer writes a line, from the number of events since the previous line */
    LineSampler(TimeSource time, LongConsumer writer) {
        this.time = time;
        this.writer = writer;
        this.due = new AtomicLong(time.nanoTime());
    }

    /**
     * Counts an event, and writes a line if none was written in the last ten seconds. Leaves the next line to the scheduled
     * call if there is one: a second line would come too early.
     */
    void count() {
        events.increment();
        if (scheduled.get()) {
            return;
        }
        long now = time.nanoTime();
        long seen = due.get();
        if (now - seen >= 0 && due.compareAndSet(seen, now + PAUSE_NANOS)) {
            write();
        } else if (scheduled.compareAndSet(false, true)) {
            time.maintainAt(due.get(), this::writeScheduled);
        }
    }

    /** Clears the flag before the sum is read, so that a later event schedules another call. */
    private void writeScheduled() {
        due.set(time.nanoTime() + PAUSE_NANOS);
        scheduled.set(false);
        write();
    }

    private void write() {
        long count = events.sumThenReset();
        if (count > 0) {
            writer.accept(count);
        }
    }
}
