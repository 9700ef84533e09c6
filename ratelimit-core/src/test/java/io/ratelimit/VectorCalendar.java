package io.ratelimit;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.time.zone.ZoneOffsetTransition;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/**
 * The days, weeks or months of a limit of {@link Vectors}, counted by dates.
 *
 * @param unit days, weeks or months
 * @param start time 0 of the sequence
 */
record VectorCalendar(ChronoUnit unit, ZoneId zone, Instant start) {

    private static final List<ChronoUnit> UNITS = List.of(ChronoUnit.DAYS, ChronoUnit.WEEKS, ChronoUnit.MONTHS);

    /** Santiago and Havana have days without a midnight, Havana has days with two, Lord Howe moves by half an hour. */
    private static final List<String> ZONES = List.of(
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "America/Havana",
            "America/Santiago",
            "Australia/Lord_Howe",
            "Asia/Kathmandu");

    private static final Instant EARLIEST = Instant.parse("2020-01-01T00:00:00Z");
    private static final int FOUR_YEARS = 1461 * 24 * 60 * 60;
    private static final int TWO_DAYS = 2 * 24 * 60 * 60;

    /** Returns a calendar of days that begins within one; in half of the cases shortly before the zone's offset changes. */
    static VectorCalendar random(SplittableRandom random) {
        ZoneId zone = ZoneId.of(ZONES.get(random.nextInt(ZONES.size())));
        Instant start = EARLIEST.plusSeconds(random.nextInt(FOUR_YEARS));
        ZoneOffsetTransition change = zone.getRules().nextTransition(start);
        if (change != null && random.nextBoolean()) {
            start = change.getInstant().minusSeconds(random.nextInt(TWO_DAYS));
        }
        return new VectorCalendar(ChronoUnit.DAYS, zone, start);
    }

    /** Returns a calendar of any unit, in the same zone and with the same time 0. */
    VectorCalendar withUnit(SplittableRandom random) {
        return new VectorCalendar(UNITS.get(random.nextInt(3)), zone, start);
    }

    /** Returns the number of the period at a time of the sequence. The period of time 0 has the number 0. */
    long number(long millis) {
        LocalDate date = start.plusMillis(millis).atZone(zone).toLocalDate();
        return unit.between(first(), date);
    }

    /** Returns the time of the sequence at which a period begins. */
    long begin(long number) {
        Instant begin = first().plus(number, unit).atStartOfDay(zone).toInstant();
        return ChronoUnit.MILLIS.between(start, begin);
    }

    private LocalDate first() {
        LocalDate date = start.atZone(zone).toLocalDate();
        return switch (unit) {
            case DAYS -> date;
            case WEEKS -> date.minusDays(date.getDayOfWeek().getValue() - 1L);
            default -> date.withDayOfMonth(1);
        };
    }

    /** Returns the length of a period in milliseconds; of months, the mean. */
    long millis() {
        return unit.getDuration().toMillis();
    }

    /** Returns the fields of a limit, with the beginnings of periods until the third one after a time. */
    String json(long until) {
        String begins = LongStream.rangeClosed(0, number(until) + 3)
                .mapToObj(number -> Long.toString(begin(number)))
                .collect(Collectors.joining(","));
        String name = unit.name().toLowerCase().replaceAll("s$", "");
        return ",\"unit\":\"%s\",\"zone\":\"%s\",\"begins\":[%s]".formatted(name, zone, begins);
    }
}
