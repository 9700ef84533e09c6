package io.ratelimit.replay;

import java.time.Duration;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Turns the stamps of a log into the moments at which its requests began.
 *
 * <p>A line may write an offset from UTC that the lines around it contradict: its time of day continues theirs, and its
 * moment is hours away. The offset of the last line that was not contradicted is then used. A log over the end of summer time
 * is no such case, because there the moments continue and the times of day don't.
 */
final class LogClock {

    private static final long NANOS = 1_000_000_000L;
    private static final long NEAR = Duration.ofMinutes(1).toNanos();
    private static final long FAR = Duration.ofMinutes(20).toNanos();

    private final ZoneId zone;
    private final boolean stampsEnd;
    private @Nullable Integer offset;
    private boolean hasFractions;
    private long last;
    private long contradicted;
    private long stepsBack;
    private long largestStepBack;
    private long lineOfLargestStepBack;

    /**
     * @param zone the zone of stamps without an offset
     * @param stampsEnd whether stamps are written when requests end, so that their durations are subtracted
     */
    LogClock(ZoneId zone, boolean stampsEnd) {
        this.zone = zone;
        this.stampsEnd = stampsEnd;
    }

    /** Notes whether a line has a fraction of a second. Some servers omit a fraction of zero. */
    void note(LogEntry entry) {
        hasFractions |= !entry.wholeSeconds;
    }

    /** Sets the moment at which the request of the next line began. */
    void read(LogEntry entry) {
        note(entry);
        entry.startAt(offsetOf(entry));
        if (last - entry.startNanos > NEAR) {
            stepsBack++;
            if (last - entry.startNanos > largestStepBack) {
                largestStepBack = last - entry.startNanos;
                lineOfLargestStepBack = entry.number;
            }
        }
        last = entry.startNanos;
        if (stampsEnd && entry.durationNanos > 0) {
            entry.startNanos -= Math.min(entry.durationNanos, entry.startNanos);
            if (!hasFractions) {
                entry.startNanos -= entry.startNanos % NANOS;
            }
        }
    }

    private int offsetOf(LogEntry entry) {
        Integer written = entry.offsetSeconds;
        if (written == null) {
            return offsetOfZone(entry);
        }
        if (offset != null && !offset.equals(written)) {
            entry.startAt(written);
            long byMoment = Math.abs(entry.startNanos - last);
            entry.startAt(offset);
            long byTimeOfDay = Math.abs(entry.startNanos - last);
            if (byTimeOfDay < NEAR && byMoment > FAR) {
                contradicted++;
                return offset;
            }
        }
        offset = written;
        return written;
    }

    /** The end of summer time repeats an hour. A line belongs to the second one if its time steps back within the first. */
    private int offsetOfZone(LogEntry entry) {
        LocalDateTime local = LocalDateTime.ofEpochSecond(entry.localSeconds, 0, ZoneOffset.UTC);
        List<ZoneOffset> valid = zone.getRules().getValidOffsets(local);
        int first = zone.getRules().getOffset(local).getTotalSeconds();
        entry.startAt(first);
        return valid.size() == 2 && last - entry.startNanos > FAR ? valid.get(1).getTotalSeconds() : first;
    }

    /** Returns the offset of the log, for times in the report. */
    ZoneId zone() {
        return offset == null ? zone : ZoneOffset.ofTotalSeconds(offset);
    }

    /** Returns how many lines have an offset that the lines around them contradict. */
    long contradicted() {
        return contradicted;
    }

    /** Returns how often a line has a time more than a minute before that of the line before. */
    long stepsBack() {
        return stepsBack;
    }

    Duration largestStepBack() {
        return Duration.ofNanos(largestStepBack);
    }

    long lineOfLargestStepBack() {
        return lineOfLargestStepBack;
    }
}
