package io.ratelimit.logging;

import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;

/**
 * Counts requests and writes a line for them. The first one is written at once. The following ones are written together,
 * ten seconds after the previous line. Each counted request is part of a line in the end. Thread-safe.
 */
final class LineSampler {

    private static final long PAUSE_NANOS = Duration.ofSeconds(10).toNanos();

    private final TimeSource time;
    private final Consumer<String> writer;
    private final LongAdder requests = new LongAdder();
    private final AtomicLong due;
    private final AtomicBoolean scheduled = new AtomicBoolean();
    private volatile boolean written;
    private volatile long writtenAt;

    /**
     * @param writer writes a line, from the number of requests since the previous line: {@code its first request}, or
     *     {@code 1,000 requests in the last 4 min}
     */
    LineSampler(TimeSource time, Consumer<String> writer) {
        this.time = time;
        this.writer = writer;
        this.due = new AtomicLong(time.nanoTime());
    }

    /**
     * Counts a request, and writes a line if none was written in the last ten seconds. Leaves the next line to the scheduled
     * call if there is one: a second line would come too early.
     */
    void count() {
        requests.increment();
        if (scheduled.get()) {
            return;
        }
        long now = time.nanoTime();
        long seen = due.get();
        if (now - seen >= 0 && due.compareAndSet(seen, now + PAUSE_NANOS)) {
            write(now);
        } else if (scheduled.compareAndSet(false, true)) {
            time.maintainAt(due.get(), this::writeScheduled);
        }
    }

    /** Clears the flag before the sum is read, so that a later request schedules another call. */
    private void writeScheduled() {
        long now = time.nanoTime();
        due.set(now + PAUSE_NANOS);
        scheduled.set(false);
        write(now);
    }

    private void write(long now) {
        long count = requests.sumThenReset();
        if (count > 0) {
            String noun = count == 1 ? " request" : " requests";
            String text = written
                    ? String.format(Locale.ROOT, "%,d%s in the last %s", count, noun, period(now - writtenAt))
                    : "its first" + (count == 1 ? "" : " " + count) + noun;
            writtenAt = now;
            written = true;
            writer.accept(text);
        }
    }

    private static String period(long nanos) {
        Duration period = Duration.ofNanos(nanos + Duration.ofSeconds(1).toNanos() - 1);
        return period.toMinutes() < 2
                ? Math.max(period.toSeconds(), 1) + " s"
                : period.toHours() < 2 ? period.toMinutes() + " min" : period.toHours() + " h";
    }
}
