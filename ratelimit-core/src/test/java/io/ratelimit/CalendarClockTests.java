package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

@Tag("slow")
class CalendarClockTests {

    private static final Instant FROM = Instant.parse("2020-01-01T00:00:00Z");
    private static final Instant TO = Instant.parse("2036-01-01T00:00:00Z");

    /** The tests look at the periods around a moment too, of which the longest is a month. */
    private static final Duration MARGIN = Duration.ofDays(100);

    private static CalendarClock clock(String unit, String zone) {
        return CalendarClock.of(BucketSpec.of("1/" + unit).withCalendar(ZoneId.of(zone)));
    }

    private static long micros(Instant moment) {
        return moment.getEpochSecond() * 1_000_000 + moment.getNano() / 1_000;
    }

    /** The zones with different times in these years and some months around them, each by one of its names. */
    static Stream<String> zones() {
        Map<List<Object>, String> names = new LinkedHashMap<>();
        ZoneId.getAvailableZoneIds().stream().sorted().forEach(name -> names.putIfAbsent(times(name), name));
        return names.values().stream();
    }

    /** Returns the offset at first, and each change of it: all that a zone is in these years. */
    private static List<Object> times(String zone) {
        Instant from = FROM.minus(MARGIN);
        ZoneRules rules = ZoneId.of(zone).getRules();
        List<Object> times = new ArrayList<>(List.of(rules.getOffset(from)));
        ZoneOffsetTransition change = rules.nextTransition(from);
        while (change != null && change.getInstant().isBefore(TO.plus(MARGIN))) {
            times.add(change);
            change = rules.nextTransition(change.getInstant());
        }
        return times;
    }

    /** Exactly one period ends at the first moment of each date, in each zone, over all changes of its clock. */
    @ParameterizedTest
    @MethodSource("zones")
    void eachDayBeginsOnceAndAtTheStartOfTheDay(String name) {
        ZoneId zone = ZoneId.of(name);
        CalendarClock clock = clock("day", name);
        LocalDate date = LocalDate.of(2020, 1, 1);
        long period = clock.periodMicros();
        for (; date.getYear() < 2036; date = date.plusDays(1)) {
            long start = micros(date.atStartOfDay(zone).toInstant());
            assertThat(clock.at(start)).as("%s %s", name, date).isEqualTo(date.toEpochDay() * period);
            assertThat(clock.at(start - 1)).as("%s %s", name, date).isLessThan(date.toEpochDay() * period);
            assertThat(clock.microsUntil(1, start - 1)).isEqualTo(1);
        }
    }

    @ParameterizedTest
    @MethodSource("zones")
    void weeksAndMonthsBeginOnMondaysAndOnTheFirst(String name) {
        ZoneId zone = ZoneId.of(name);
        CalendarClock weeks = clock("week", name);
        CalendarClock months = clock("month", name);
        LocalDate monday = LocalDate.of(2020, 1, 6);
        for (long week = weeks.at(micros(monday.atStartOfDay(zone).toInstant())) / weeks.periodMicros();
                monday.getYear() < 2036;
                week++, monday = monday.plusWeeks(1)) {
            long start = micros(monday.atStartOfDay(zone).toInstant());
            assertThat(weeks.at(start)).as("%s %s", name, monday).isEqualTo(week * weeks.periodMicros());
            assertThat(weeks.at(start - 1)).isLessThan(week * weeks.periodMicros());
        }
        for (LocalDate first = LocalDate.of(2020, 1, 1); first.getYear() < 2036; first = first.plusMonths(1)) {
            long start = micros(first.atStartOfDay(zone).toInstant());
            long month = ChronoUnit.MONTHS.between(LocalDate.EPOCH, first);
            assertThat(months.at(start)).as("%s %s", name, first).isEqualTo(month * months.periodMicros());
            assertThat(months.at(start - 1)).isLessThan(month * months.periodMicros());
            assertThat(months.microsUntil(1, start))
                    .isEqualTo(micros(first.plusMonths(1).atStartOfDay(zone).toInstant()) - start);
        }
    }

    /** The calendar's clock never goes back around a change of the wall clock. A wait is at most as long as the stretched one. */
    @ParameterizedTest
    @MethodSource("zones")
    void timeNeverGoesBackAroundAChangeOfTheClock(String name) {
        ZoneId zone = ZoneId.of(name);
        for (String unit : List.of("day", "week", "month")) {
            CalendarClock clock = clock(unit, name);
            ZoneOffsetTransition change = zone.getRules().nextTransition(FROM);
            while (change != null && change.getInstant().isBefore(TO)) {
                long before = Long.MIN_VALUE;
                for (int minutes = -2_000; minutes <= 2_000; minutes += 5) {
                    long moment = micros(change.getInstant()) + minutes * 60_000_000L;
                    long now = clock.at(moment);
                    long wait = clock.microsUntil(2, moment);
                    long back = clock.momentOf(now);
                    // plain comparisons, since there are three million of them
                    boolean holds = now >= before
                            && wait >= 1
                            && wait <= 2 * clock.periodMicros() - now % clock.periodMicros()
                            && clock.at(moment + wait) / clock.periodMicros() >= now / clock.periodMicros() + 2
                            && back >= moment - 2
                            && back <= moment;
                    if (!holds) {
                        fail("%s %s %s: at %d it is %d after %d, two periods take %d, and it was that at %d"
                                .formatted(name, unit, change, moment, now, before, wait, back));
                    }
                    before = now;
                }
                change = zone.getRules().nextTransition(change.getInstant());
            }
        }
    }

    /** In 2026 the clocks of Beirut go forward at midnight, and those of Santiago go back at midnight. */
    @ParameterizedTest
    @ValueSource(strings = {"Asia/Beirut", "America/Santiago", "Africa/Cairo", "America/Havana"})
    void aMidnightThatIsMissingOrComesTwiceIsOneBoundary(String name) {
        ZoneId zone = ZoneId.of(name);
        CalendarClock clock = clock("day", name);
        ZonedDateTime moment = ZonedDateTime.of(2026, 1, 1, 0, 0, 0, 0, zone);
        long boundaries = 0;
        long period = clock.at(micros(moment.toInstant())) / clock.periodMicros();
        for (int i = 0; i < 365 * 48; i++) {
            moment = moment.plus(30, ChronoUnit.MINUTES);
            long next = clock.at(micros(moment.toInstant())) / clock.periodMicros();
            boundaries += next - period;
            period = next;
        }
        assertThat(boundaries).isEqualTo(365);
    }

    @Test
    void theMomentsAroundOneAreTheBeginningsOfFourPeriods() {
        CalendarClock clock = clock("month", "Europe/Berlin");
        long[] around = clock.around(micros(Instant.parse("2026-03-15T12:00:00Z")));
        assertThat(around)
                .containsExactly(
                        56 * 12 + 1,
                        micros(Instant.parse("2026-01-31T23:00:00Z")),
                        micros(Instant.parse("2026-02-28T23:00:00Z")),
                        micros(Instant.parse("2026-03-31T22:00:00Z")),
                        micros(Instant.parse("2026-04-30T22:00:00Z")));
    }
}
