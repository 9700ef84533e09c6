package io.ratelimit;

/** A {@link CalendarClock} that follows a time source and never returns to an earlier period. Thread-safe. */
final class WallCalendar {
    /*
     * What happens when the wall clock steps back. A batch must not come twice, so the calendar stands still at the
     * beginning of the latest period until the wall clock reaches that period again. If the wall clock is more than a
     * whole period behind, it had been ahead and was corrected. The calendar would then stand still for too long.
     * Therefore the periods of the wall clock get higher numbers from then on (the shift). The next period to begin gets
     * the number of the latest period, whose batch has come already. The period after that gets a new number.
     */

    private final CalendarClock calendar;
    private final TimeSource time;
    private final long periodNanos;
    private volatile Latest latest;

    /**
     * @param count the number of the latest period, with the shift
     * @param shift the number that is added to the numbers of the wall clock's periods
     */
    private record Latest(long count, long shift) {}

    WallCalendar(CalendarClock calendar, TimeSource time) {
        this.calendar = calendar;
        this.time = time;
        this.periodNanos = calendar.periodMicros() * 1_000;
        this.latest = new Latest(presentCount(), 0);
    }

    private long presentCount() {
        return count(micros(time.wallNanos()));
    }

    private long count(long micros) {
        return Math.floorDiv(calendar.at(micros), calendar.periodMicros());
    }

    private static long micros(long nanos) {
        return Math.floorDiv(nanos, 1_000L);
    }

    /** Returns the wall-clock time at a moment of the time source, in microseconds. */
    private long wallMicros(long nanos, long now) {
        return micros(time.wallNanos() - (now - nanos));
    }

    /** Returns the length of a period on the calendar's clock, in nanoseconds. */
    long periodNanos() {
        return periodNanos;
    }

    /** Returns the time of the calendar's clock at a moment of the time source, in nanoseconds. */
    long at(long nanos) {
        long now = time.nanoTime();
        long clock = calendar.at(wallMicros(nanos, now)) * 1_000;
        long count = Math.floorDiv(clock, periodNanos);
        Latest seen = latest;
        if (count + seen.shift != seen.count && nanos - now <= 0) {
            seen = update();
        }
        return count + seen.shift < seen.count ? seen.count * periodNanos : clock + seen.shift * periodNanos;
    }

    /** Reads the wall clock under the lock: an earlier reading may be old, and would look like a step back. */
    private synchronized Latest update() {
        long count = presentCount();
        long behind = latest.count - latest.shift - count;
        if (behind < 0) {
            latest = new Latest(count + latest.shift, latest.shift);
        } else if (behind > 1) {
            latest = new Latest(latest.count, latest.shift + behind - 1);
        }
        return latest;
    }

    /**
     * Returns the true time from a moment until a number of periods have begun, in nanoseconds. Periods that began
     * before the wall clock stepped back don't count again.
     */
    long nanosUntil(long periods, long nanos) {
        long micros = wallMicros(nanos, time.nanoTime());
        Latest seen = latest;
        return calendar.microsUntil(periods + Math.max(seen.count - seen.shift - count(micros), 0), micros) * 1_000;
    }
}
