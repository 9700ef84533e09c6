package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TimeZone;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Calendar refill in Redis, by script and by transaction. */
@Tag("slow")
class RedisCalendarTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final long HOUR = 3_600_000_000L;
    private static final List<String> ZONES =
            ZoneId.getAvailableZoneIds().stream().sorted().toList();

    private final AtomicLong micros = new AtomicLong();
    private final RedisKeys keys = TestRedis.keys();
    private final BucketStore script = TestRedis.shared().scriptStore(keys, TIMEOUT, false, micros::get);
    private final BucketStore transaction = TestRedis.shared().transactionStore(keys, TIMEOUT, micros::get);

    private final ScriptModel model = new ScriptModel(keys, false);

    private void setClock(String moment) {
        Instant now = Instant.parse(moment);
        micros.set(now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000);
    }

    private static Charge charge(BucketSpec spec, long cost) {
        return Charge.of(ThrottlePolicy.of("quota", spec, "user"), "alice", cost);
    }

    @Test
    void theWholeBatchComesAtTheBoundaryAndTheRetryTimeIsThatMoment() {
        for (BucketStore store : List.of(script, transaction)) {
            setClock("2026-03-10T12:00:00Z");
            BucketSpec spec = BucketSpec.of("5/month").withCalendar(ZoneId.of("Europe/Berlin"));
            assertThat(store.take(List.of(charge(spec, 5))).allowed()).isTrue();
            Decision denied = store.take(List.of(charge(spec, 1)));
            Duration wait =
                    Duration.between(Instant.parse("2026-03-10T12:00:00Z"), Instant.parse("2026-03-31T22:00:00Z"));
            assertThat(denied.retryAfter()).isBetween(wait, wait.plusNanos(4_000));

            setClock("2026-03-31T21:59:59.999Z");
            assertThat(store.take(List.of(charge(spec, 1))).allowed()).isFalse();
            setClock("2026-03-31T22:00:00Z");
            assertThat(store.take(List.of(charge(spec, 5))).allowed()).isTrue();
            assertThat(store.snapshot(charge(spec, 1)).available()).isZero();
        }
    }

    @Test
    void instancesInDifferentDefaultZonesShareTheirBuckets() {
        BucketSpec spec = BucketSpec.of("5/day").withCalendar(ZoneId.of("Europe/Berlin"));
        TimeZone own = TimeZone.getDefault();
        try {
            setClock("2026-03-10T12:00:00Z");
            for (String zone : List.of("Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin")) {
                TimeZone.setDefault(TimeZone.getTimeZone(zone));
                BucketStore instance = TestRedis.shared().scriptStore(keys, TIMEOUT, false, micros::get);
                assertThat(instance.take(List.of(charge(spec, 1))).allowed()).isTrue();
                Decision denied = instance.take(List.of(charge(spec, 5)));
                assertThat(denied.retryAfter())
                        .isBetween(Duration.ofHours(11), Duration.ofHours(11).plusNanos(4_000));
            }
            assertThat(script.snapshot(charge(spec, 1)).available()).isEqualTo(2);
        } finally {
            TimeZone.setDefault(own);
        }
    }

    @RepeatedTest(60)
    void bothStoresAgreeWithEachOtherAndWithACountOfDates(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        ZoneId zone = ZoneId.of(ZONES.get(random.nextInt(ZONES.size())));
        String unit = List.of("day", "week", "month").get(random.nextInt(3));
        BucketSpec spec = BucketSpec.of(random.nextInt(1, 20) + "/" + unit)
                .withCapacity(random.nextInt(1, 50))
                .withCalendar(zone);
        micros.set(1_577_836_800_000_000L + random.nextLong(450_000_000_000_000L));
        long level = spec.capacity();
        long period = period(unit, zone);
        for (int i = 0; i < 40; i++) {
            micros.addAndGet(random.nextLong(
                    random.nextInt(8) == 0 ? 3_000_000_000_000L : random.nextBoolean() ? 100_000_000_000L : 1_000));
            if (random.nextInt(20) == 0) {
                micros.addAndGet(-random.nextLong(60_000_000));
            }
            long next = Math.max(period(unit, zone), period);
            level = Math.min(level + (next - period) * spec.rate().tokens(), spec.capacity());
            period = next;
            Charge charge = charge(spec, random.nextInt(1, 6));
            Decision decision = script.take(List.of(charge));
            String step = "seed %d, step %d, %s, %d".formatted(run.getCurrentRepetition(), i, spec, micros.get());
            assertThat(decision.allowed()).as(step).isEqualTo(level >= charge.cost());
            Decision other = transaction.take(List.of(charge));
            assertThat(other.allowed()).as(step).isEqualTo(decision.allowed());
            assertThat(other.remaining()).as(step).isEqualTo(decision.remaining());
            assertThat(decision.retryNanos() - other.retryNanos()).as(step).isBetween(0L, 4_000L);
            level -= decision.allowed() ? charge.cost() : 0;
            if (decision.outcome() == Decision.Outcome.DENIED) {
                long wait = decision.retryNanos() / 1_000;
                assertThat(period(unit, zone, micros.get() + wait))
                        .as(step)
                        .isEqualTo(period
                                + (charge.cost() - level + spec.rate().tokens() - 1)
                                        / spec.rate().tokens());
            }
        }
    }

    /** Specs of one calendar take turns, calls wait and give back. */
    @RepeatedTest(60)
    void theScriptAnswersAndStoresWhatItsModelDoes(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        ZoneId zone = ZoneId.of(ZONES.get(random.nextInt(ZONES.size())));
        String unit = List.of("day", "week", "month").get(random.nextInt(3));
        micros.set(1_577_836_800_000_000L + random.nextLong(450_000_000_000_000L));
        List<BucketSpec> specs = Stream.generate(() -> BucketSpec.of(random.nextInt(1, 20) + "/" + unit)
                        .withCapacity(random.nextInt(1, 50))
                        .withCalendar(zone))
                .limit(3)
                .toList();
        List<Answer> taken = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            micros.addAndGet(random.nextLong(random.nextBoolean() ? 900_000_000_000L : 1_000_000) - 100_000);
            BucketSpec spec = specs.get(random.nextInt(random.nextInt(1, 4)));
            String step = "seed %d, step %d, %s".formatted(run.getCurrentRepetition(), i, spec);
            if (random.nextInt(4) == 0 && !taken.isEmpty()) {
                List<Answer> back = List.of(taken.remove(random.nextInt(taken.size())));
                script.giveBack(back);
                model.giveBack(back, micros.get());
            } else {
                List<Charge> charges = List.of(
                        charge(spec, random.nextInt(1, 8)).withMaxWait(Duration.ofDays(random.nextInt(40))),
                        Charge.of(ThrottlePolicy.of("other", BucketSpec.of("100/1m")), "", 1));
                boolean ahead = random.nextBoolean();
                Decision decision = ahead ? script.reserve(charges) : script.take(charges);
                assertThat(model.take(charges, ahead, micros.get())).as(step).isEqualTo(decision);
                taken.addAll(decision.allowed() ? decision.answers() : List.of());
            }
            Charge charge = charge(spec, 1);
            assertThat(TestRedis.shared().connection().sync().get(keys.key(charge)))
                    .as(step)
                    .isEqualTo(model.value(charge));
            assertThat(model.snapshot(charge, micros.get())).as(step).isEqualTo(script.snapshot(charge));
        }
    }

    private long period(String unit, ZoneId zone) {
        return period(unit, zone, micros.get());
    }

    private static long period(String unit, ZoneId zone, long micros) {
        LocalDate date = Instant.EPOCH.plusNanos(micros * 1_000).atZone(zone).toLocalDate();
        return switch (unit) {
            case "day" -> date.toEpochDay();
            case "week" -> Math.floorDiv(date.toEpochDay() + 3, 7);
            default -> date.getYear() * 12L + date.getMonthValue();
        };
    }
}
