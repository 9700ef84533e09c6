package io.ratelimit;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.Locale;
import java.util.stream.Stream;

/** The clock of buckets with calendar refill: it counts days, weeks or months of a zone. Thread-safe. */
public final class CalendarClock {
    /*
     * How a calendar becomes interval refill. Interval refill counts the periods of a clock that have ended. The days
     * and months of a zone differ in length, so this clock is the wall clock stretched. On this clock each period has
     * the same length, which is longer than any true one, and begins at a multiple of that length. The count of ended
     * periods, the share of a period that has passed, and so the conversion to another spec are then those of interval
     * refill. Only waits are true times: a wait for the next two batches ends where the second period from now begins
     * in the zone. Since a stretched period is longer than a true one, a stretched wait is long enough for a bucket to
     * be full.
     *
     * A period begins at the first moment of its date. If midnight is missing, this is the moment to which the clock
     * jumps; if midnight comes twice, the first one. A period without a date has no length.
     */

    private static final long SECOND_MICROS = 1_000_000;
    private static final int EPOCH_MONTHS = 1970 * 12;

    /** The day of the week of 1970-01-01, counted from Monday. */
    private static final int EPOCH_WEEKDAY = 3;

    /** The most periods ahead that a wait may end: 40,000 days are 109 years. */
    private static final long MAX_PERIODS_AHEAD = 40_000;

    private enum Unit {
        /** 30 hours are longer than a day of 27 hours, as at Casey station in 2020. */
        DAY(Duration.ofDays(1), Duration.ofHours(30)),
        WEEK(Duration.ofDays(7), Duration.ofDays(8)),
        MONTH(Rate.MONTH, Duration.ofDays(32));

        private final Duration period;
        private final long stretchedMicros;

        Unit(Duration period, Duration stretched) {
            this.period = period;
            this.stretchedMicros = stretched.toNanos() / 1_000;
        }

        long count(LocalDate date) {
            return switch (this) {
                case DAY -> date.toEpochDay();
                case WEEK -> Math.floorDiv(date.toEpochDay() + EPOCH_WEEKDAY, 7L);
                case MONTH -> date.getYear() * 12L + date.getMonthValue() - 1 - EPOCH_MONTHS;
            };
        }

        LocalDate start(long count) {
            return switch (this) {
                case DAY -> LocalDate.ofEpochDay(count);
                case WEEK -> LocalDate.ofEpochDay(count * 7 - EPOCH_WEEKDAY);
                case MONTH -> LocalDate.of(1970, 1, 1).plusMonths(count);
            };
        }
    }

    /** A period of the calendar, from its first microsecond to the first of the next one. */
    private record Period(long count, long start, long end) {

        boolean contains(long micros) {
            return micros >= start && micros < end;
        }
    }

    private final Unit unit;
    private final ZoneId zone;
    private volatile Period latest = new Period(0, 0, 0);

    private CalendarClock(Unit unit, ZoneId zone) {
        this.unit = unit;
        this.zone = zone;
    }

    /**
     * Returns the clock of a spec.
     *
     * @throws IllegalArgumentException if the spec's period is no day, week or month
     */
    public static CalendarClock of(BucketSpec spec) {
        for (Unit unit : Unit.values()) {
            if (unit.period.equals(spec.rate().period())) {
                return new CalendarClock(unit, spec.zone());
            }
        }
        throw new IllegalArgumentException("'" + spec.rate() + "' has no period of the calendar");
    }

    static boolean hasPeriodOf(Rate rate) {
        return Stream.of(Unit.values()).anyMatch(unit -> unit.period.equals(rate.period()));
    }

    /** Returns the name of the period: day, week or month. */
    public String unit() {
        return unit.name().toLowerCase(Locale.ROOT);
    }

    /** Returns the length of each period on this clock, in microseconds. */
    public long periodMicros() {
        return unit.stretchedMicros;
    }

    /**
     * Returns the time of this clock at a moment, in microseconds.
     *
     * @param epochMicros the moment in microseconds since 1970-01-01T00:00Z
     */
    public long at(long epochMicros) {
        Period period = period(epochMicros);
        return stretched(period.count, epochMicros - period.start, period.end - period.start);
    }

    private long stretched(long count, long passed, long length) {
        long share = (long) Math.floor((double) passed / length * unit.stretchedMicros);
        return count * unit.stretchedMicros + Math.min(share, unit.stretchedMicros - 1);
    }

    /**
     * Returns the true time until a number of periods have begun, in microseconds; 0 for no periods.
     *
     * @param periods the number of periods to begin; at most 40,000 are counted
     * @param epochMicros the moment to count from, in microseconds since 1970-01-01T00:00Z
     */
    public long microsUntil(long periods, long epochMicros) {
        return periods <= 0 ? 0 : start(period(epochMicros).count + Math.min(periods, MAX_PERIODS_AHEAD)) - epochMicros;
    }

    /**
     * Returns a moment at which this clock has a time, rounded down, in microseconds since 1970-01-01T00:00Z.
     *
     * @param micros the time of this clock in microseconds
     */
    public long momentOf(long micros) {
        long count = Math.floorDiv(micros, unit.stretchedMicros);
        long start = start(count);
        double share = (double) Math.floorMod(micros, unit.stretchedMicros) / unit.stretchedMicros;
        return start + (long) Math.floor(share * (start(count + 1) - start));
    }

    /**
     * Returns five numbers about the periods around a moment: the number of the previous period since 1970, and the
     * beginnings of the previous, the current and the next two periods in microseconds since 1970-01-01T00:00Z.
     */
    public long[] around(long epochMicros) {
        long first = period(epochMicros).count - 1;
        return new long[] {first, start(first), start(first + 1), start(first + 2), start(first + 3)};
    }

    private Period period(long epochMicros) {
        Period period = latest;
        if (!period.contains(epochMicros)) {
            period = find(epochMicros);
            latest = period;
        }
        return period;
    }

    /**
     * Returns the period of a moment. A date may come twice or never, so the date in the zone is only a first guess.
     */
    private Period find(long epochMicros) {
        Instant moment = Instant.ofEpochSecond(
                Math.floorDiv(epochMicros, SECOND_MICROS), Math.floorMod(epochMicros, SECOND_MICROS) * 1_000);
        long count = unit.count(moment.atZone(zone).toLocalDate());
        while (start(count) > epochMicros) {
            count--;
        }
        while (start(count + 1) <= epochMicros) {
            count++;
        }
        return new Period(count, start(count), start(count + 1));
    }

    private long start(long count) {
        Instant start = unit.start(count).atStartOfDay(zone).toInstant();
        return start.getEpochSecond() * SECOND_MICROS + start.getNano() / 1_000;
    }
}
