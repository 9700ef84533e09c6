package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec.Refill;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TimeZone;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Buckets whose tokens come at midnight, on Monday or on the first of the month. */
class CalendarRefillTests {

    private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");

    private final ManualTimeSource time = new ManualTimeSource();

    @BeforeEach
    void setClock() {
        time.setWallClock(Instant.parse("2026-02-10T12:00:00Z"));
    }

    private void advanceTo(String moment) {
        Instant now = Instant.EPOCH.plusNanos(time.wallNanos());
        time.advance(Duration.between(now, Instant.parse(moment)));
    }

    private static BucketSpec spec(String rate, ZoneId zone) {
        return BucketSpec.of(rate).withCalendar(zone);
    }

    private static long drain(TokenBucket bucket) {
        long granted = 0;
        while (bucket.tryAcquire(1)) {
            granted++;
        }
        return granted;
    }

    @ParameterizedTest
    @CsvSource({
        "5/day, 2026-02-10T23:00:00Z",
        "5/week, 2026-02-15T23:00:00Z",
        "5/month, 2026-02-28T23:00:00Z",
    })
    void theWholeBatchComesAtTheBoundaryAndTheRetryTimeIsThatMoment(String rate, String boundary) {
        TokenBucket bucket = TokenBucket.of(spec(rate, BERLIN), time);
        assertThat(drain(bucket)).isEqualTo(5);
        Duration until = Duration.between(Instant.parse("2026-02-10T12:00:00Z"), Instant.parse(boundary));
        assertThat(bucket.decide(1).retryAfter()).isEqualTo(until);
        assertThat(bucket.snapshot().resetAfter()).isEqualTo(until);

        time.advance(until.minusNanos(1_000));
        assertThat(drain(bucket)).isZero();
        time.advance(Duration.ofNanos(1_000));
        assertThat(drain(bucket)).isEqualTo(5);
    }

    @Test
    void aCapacityOfSeveralMonthsFillsMonthByMonth() {
        TokenBucket bucket = TokenBucket.of(spec("10/month", ZoneOffset.UTC).withCapacity(30), time);
        assertThat(drain(bucket)).isEqualTo(30);
        assertThat(bucket.decide(25).retryAfter())
                .isEqualTo(
                        Duration.between(Instant.parse("2026-02-10T12:00:00Z"), Instant.parse("2026-05-01T00:00:00Z")));
        advanceTo("2026-03-01T00:00:00Z");
        assertThat(drain(bucket)).isEqualTo(10);
        advanceTo("2026-04-30T23:59:59Z");
        assertThat(drain(bucket)).isEqualTo(10);
        advanceTo("2028-03-01T00:00:00Z");
        assertThat(drain(bucket)).isEqualTo(30);
    }

    @ParameterizedTest
    @ValueSource(strings = {"Asia/Tokyo", "America/Los_Angeles", "UTC"})
    void theDefaultZoneOfTheMachineDoesntMatter(String machine) {
        TimeZone before = TimeZone.getDefault();
        try {
            TimeZone.setDefault(TimeZone.getTimeZone(machine));
            theWholeBatchComesAtTheBoundaryAndTheRetryTimeIsThatMoment("5/month", "2026-02-28T23:00:00Z");
        } finally {
            TimeZone.setDefault(before);
        }
    }

    @Test
    void aWallClockThatStepsBackGrantsNoBatchTwice() {
        TokenBucket bucket = TokenBucket.of(spec("5/day", ZoneOffset.UTC), time);
        drain(bucket);
        advanceTo("2026-02-11T00:00:30Z");
        assertThat(drain(bucket)).isEqualTo(5);

        time.setWallClock(Instant.parse("2026-02-10T23:59:00Z"));
        assertThat(drain(bucket)).isZero();
        advanceTo("2026-02-11T00:00:30Z");
        assertThat(drain(bucket)).isZero();
        assertThat(bucket.decide(1).retryAfter()).isEqualTo(Duration.ofDays(1).minusSeconds(30));
        advanceTo("2026-02-12T00:00:00Z");
        assertThat(drain(bucket)).isEqualTo(5);
    }

    @Test
    void aWallClockThatWasYearsAheadGrantsAgainOnceItIsRight() {
        TokenBucket bucket = TokenBucket.of(spec("5/day", ZoneOffset.UTC), time);
        drain(bucket);
        time.setWallClock(Instant.parse("2036-02-10T12:00:00Z"));
        assertThat(drain(bucket)).isEqualTo(5);
        time.setWallClock(Instant.parse("2026-02-10T13:00:00Z"));
        assertThat(drain(bucket)).isZero();
        assertThat(bucket.decide(1).retryAfter()).isEqualTo(Duration.ofHours(35));
        advanceTo("2026-02-11T23:59:59Z");
        assertThat(drain(bucket)).isZero();
        advanceTo("2026-02-12T00:00:00Z");
        assertThat(drain(bucket)).isEqualTo(5);
        advanceTo("2026-02-13T00:00:00Z");
        assertThat(drain(bucket)).isEqualTo(5);
    }

    /** The machine stops while a call is reading the clock, and another call is the first to continue. */
    @Test
    void aCallThatIsDaysOldBringsNoBatch() {
        AtomicReference<Runnable> meanwhile = new AtomicReference<>(() -> {});
        TimeSource stopping = new TimeSource() {
            @Override
            public long nanoTime() {
                return time.nanoTime();
            }

            @Override
            public long wallNanos() {
                long nanos = time.wallNanos();
                meanwhile.getAndSet(() -> {}).run();
                return nanos;
            }
        };
        TokenBucket bucket = TokenBucket.of(spec("5/day", ZoneOffset.UTC), stopping);
        assertThat(drain(bucket)).isEqualTo(5);
        meanwhile.set(() -> {
            advanceTo("2026-02-13T12:00:00Z");
            assertThat(drain(bucket)).isEqualTo(5);
        });
        assertThat(bucket.tryAcquire(1)).isFalse();
        assertThat(drain(bucket)).isZero();
    }

    @Test
    void aWallClockThatIsSetForwardBringsTheBatchesOfTheDaysBetween() {
        TokenBucket bucket = TokenBucket.of(spec("5/day", ZoneOffset.UTC).withCapacity(20), time);
        drain(bucket);
        time.setWallClock(Instant.parse("2026-02-13T12:00:00Z"));
        assertThat(drain(bucket)).isEqualTo(15);
    }

    @Test
    void aConversionKeepsTheShareOfThePeriodThatIsEarned() {
        advanceTo("2026-02-15T00:00:00Z");
        TokenBucket bucket = TokenBucket.of(spec("100/month", ZoneOffset.UTC), time);
        drain(bucket);
        bucket.reconfigure(BucketSpec.of("100/month"));
        assertThat(bucket.snapshot().available())
                .as("half of February is 14 days")
                .isEqualTo(50);
        assertThat(bucket.tryAcquire(1)).isTrue();

        bucket.reconfigure(spec("100/month", ZoneOffset.UTC));
        assertThat(bucket.snapshot().available()).isEqualTo(49);
        advanceTo("2026-03-01T00:00:00Z");
        assertThat(bucket.snapshot().available()).isEqualTo(99);
    }

    @Test
    void aKeyIsKeptUntilItsBucketIsFull() {
        LocalBucketStore store = new LocalBucketStore(time);
        ThrottlePolicy policy = ThrottlePolicy.of("quota", spec("5/month", ZoneOffset.UTC), "user");
        Charge all = new Charge(policy, policy.spec(), "alice", 5);
        assertThat(store.take(List.of(all)).allowed()).isTrue();
        advanceTo("2026-02-28T23:59:59Z");
        assertThat(store.take(List.of(all)).allowed()).isFalse();
        assertThat(store.snapshot(all).available()).isZero();
        advanceTo("2026-03-01T00:00:00Z");
        assertThat(store.take(List.of(all)).allowed()).isTrue();
    }

    /** A count of dates by java.time alone. */
    @RepeatedTest(50)
    void agreesWithACountOfDates(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        List<String> zones = ZoneId.getAvailableZoneIds().stream().sorted().toList();
        ZoneId zone = ZoneId.of(zones.get(random.nextInt(zones.size())));
        String unit = List.of("day", "week", "month").get(random.nextInt(3));
        long tokens = random.nextInt(1, 20);
        BucketSpec spec = BucketSpec.of(tokens + "/" + unit)
                .withCapacity(random.nextInt(1, 50))
                .withCalendar(zone);
        time.setWallClock(Instant.ofEpochSecond(1_577_836_800L + random.nextLong(500_000_000L)));
        TokenBucket bucket = TokenBucket.of(spec, time);
        long level = spec.capacity();
        long period = period(unit, zone);
        for (int i = 0; i < 500; i++) {
            long step = random.nextLong(random.nextInt(20) == 0 ? 3_000_000_000_000L : 100_000_000_000L);
            time.advance(Duration.ofNanos(step * 1_000));
            long next = period(unit, zone);
            level = Math.min(level + Math.max(next - period, 0) * tokens, spec.capacity());
            period = Math.max(next, period);
            long cost = random.nextInt(1, 6);
            boolean allowed = level >= cost;
            assertThat(bucket.tryAcquire(cost))
                    .as(
                            "seed %d, step %d, %s %s",
                            run.getCurrentRepetition(), i, zone, Instant.EPOCH.plusNanos(time.wallNanos()))
                    .isEqualTo(allowed);
            level -= allowed ? cost : 0;
        }
    }

    private long period(String unit, ZoneId zone) {
        LocalDate date = Instant.EPOCH.plusNanos(time.wallNanos()).atZone(zone).toLocalDate();
        return switch (unit) {
            case "day" -> date.toEpochDay();
            case "week" -> Math.floorDiv(date.toEpochDay() + 3, 7);
            default -> date.getYear() * 12L + date.getMonthValue();
        };
    }

    @Test
    void onlyADayAWeekAndAMonthAreOfTheCalendar() {
        assertThat(spec("5/1d", BERLIN))
                .isEqualTo(spec("5/day", BERLIN))
                .hasToString("5/1d, capacity 5, refilled by the calendar of Europe/Berlin");
        assertThat(BucketSpec.of("5/month").withRefill(Refill.CALENDAR))
                .hasToString("5/month, capacity 5, refilled by the calendar of UTC");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> spec("5/1h", BERLIN))
                .withMessageContaining("tokens a day, a week or a month, such as 10000/month, but was 5/1h");
    }
}
