package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.GrantOracle;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.redis.RedisScript.ScriptReply;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Calendar refill for instances whose clocks are wrong by up to 400 days, run at any speed and step. They start again now and
 * then. Their replies and the values in Redis are those of the Java arithmetic at the server's time. While the server's clock
 * goes forward, a bucket with one spec also grants exactly what the {@link GrantOracle} counts. The number of a run is its
 * seed. With {@code -Dratelimit.test.steps=1000000} there are so many steps.
 */
class RedisCalendarOracleTests {

    private static final int RUN = 200;
    private static final int THREADS = 16;
    private static final long DAY = 86_400_000_000L;
    private static final List<String> ZONES =
            ZoneId.getAvailableZoneIds().stream().sorted().toList();
    private static final Charge PLAIN =
            Charge.of(ThrottlePolicy.of("plain", BucketSpec.of("1000000/1s").withCapacity(1_000_000_000)), "", 1);

    @Test
    void instancesWithWrongClocksGrantWhatTheServersCalendarBrings() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            List<Future<?>> runs = new ArrayList<>();
            for (int seed = 1; seed <= GrantOracle.steps(4_000) / RUN; seed++) {
                int number = seed;
                runs.add(threads.submit(() -> new History(number).run()));
            }
            for (Future<?> run : runs) {
                run.get();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    /** An instance that may start again, with another clock. */
    private final class Instance {
        private final RedisKeys keys;
        private final AtomicLong server;
        private final SplittableRandom random;
        private ManualTimeSource clock;
        private RedisScriptBucketStore store;

        Instance(RedisKeys keys, AtomicLong server, SplittableRandom random) {
            this.keys = keys;
            this.server = server;
            this.random = random;
            start();
        }

        private void start() {
            clock = new ManualTimeSource();
            setWallClock();
            store = TestRedis.shared().scriptStore(keys, Duration.ofSeconds(60), false, server::get, clock);
        }

        private void setWallClock() {
            long days = random.nextInt(4) == 0 ? 0 : random.nextInt(801) - 400;
            clock.setWallClock(Instant.ofEpochSecond(server.get() / 1_000_000).plus(Duration.ofDays(days)));
        }

        RedisScriptBucketStore store(long passed) {
            switch (random.nextInt(12)) {
                case 0 -> start();
                case 1 -> setWallClock();
                case 2 -> clock.advance(Duration.ofNanos(random.nextLong(100_000 * DAY)));
                case 3, 4 -> {} // it slept
                default -> clock.advance(Duration.ofNanos(1_000 * Math.max(passed, 0)));
            }
            return store;
        }
    }

    private record Taken(Answer answer, GrantOracle.Grant grant) {}

    private final class History {
        private final int seed;
        private final SplittableRandom random;
        private final RedisKeys keys = TestRedis.keys();
        private final AtomicLong server = new AtomicLong();
        private final ScriptModel java = new ScriptModel(keys, false);
        private final List<BucketSpec> specs;
        private final List<Instance> instances;
        private final List<Taken> taken = new ArrayList<>();
        private final GrantOracle oracle;
        private final BucketSpec counted;
        private BucketSpec spec;
        private CalendarClock calendar;
        private String step = "";

        History(int seed) {
            this.seed = seed;
            this.random = new SplittableRandom(seed);
            String unit = List.of("day", "week", "month").get(random.nextInt(3));
            this.specs = Stream.generate(() -> spec(unit))
                    .limit(random.nextBoolean() ? 1 : 3)
                    .toList();
            this.spec = specs.get(0);
            this.calendar = CalendarClock.of(spec);
            server.set(1_577_836_800_000_000L + random.nextLong(450_000_000_000_000L));
            this.instances = Stream.generate(() -> new Instance(keys, server, random))
                    .limit(3)
                    .toList();
            Duration period = Duration.ofNanos(1_000 * calendar.periodMicros());
            this.counted = new BucketSpec(new Rate(spec.rate().tokens(), period), spec.capacity(), Refill.INTERVAL);
            long ticks = RedisTickScale.of(spec).perToken();
            this.oracle = new GrantOracle(List.of(counted), List.of(ticks), 1_000, calendarNanos());
        }

        private BucketSpec spec(String unit) {
            return BucketSpec.of(random.nextInt(1, 20) + "/" + unit)
                    .withCapacity(random.nextInt(1, 50))
                    .withCalendar(ZoneId.of(ZONES.get(random.nextInt(ZONES.size()))));
        }

        private boolean isExact() {
            return specs.size() == 1;
        }

        /** Returns the time of the calendar, on which all periods have one length. */
        private long calendarNanos() {
            return 1_000 * calendar.at(server.get());
        }

        void run() {
            for (int i = 0; i < RUN; i++) {
                step = "seed %d, step %d, %s".formatted(seed, i, spec);
                long passed = passed();
                server.addAndGet(passed);
                RedisScriptBucketStore store =
                        instances.get(random.nextInt(instances.size())).store(passed);
                int kind = random.nextInt(8);
                if (kind < 2 && !taken.isEmpty()) {
                    settle(store, taken.remove(random.nextInt(taken.size())));
                } else if (kind == 2) {
                    takeTogether(store);
                } else {
                    take(store);
                }
                spec = specs.get(random.nextInt(specs.size()));
                calendar = CalendarClock.of(spec);
                Charge charge = charge(1);
                assertThat(TestRedis.shared().connection().sync().get(keys.key(charge)))
                        .as(step)
                        .isEqualTo(java.value(charge));
            }
        }

        /** Often the last moment of a period or the first one. With several specs the server's clock is set back as well. */
        private long passed() {
            long ends = calendar.microsUntil(1, server.get());
            return switch (random.nextInt(isExact() ? 10 : 11)) {
                case 0 -> ends - 1;
                case 1 -> ends;
                case 2 -> random.nextLong(3 * DAY);
                case 3 -> random.nextInt(8) == 0 ? random.nextLong(400 * DAY) : random.nextLong(ends + 1);
                case 4, 5, 6 -> random.nextLong(1_000_000);
                case 10 -> -random.nextLong(random.nextBoolean() ? 60_000_000 : 100 * DAY);
                default -> 0;
            };
        }

        private Charge charge(long cost) {
            return Charge.of(ThrottlePolicy.of("quota", spec, "user"), "alice", cost);
        }

        private void take(RedisScriptBucketStore store) {
            long cost = random.nextBoolean() ? 1 : 1 + random.nextLong(spec.capacity());
            long wait = random.nextInt(3) > 0 ? 0 : 1_000 * random.nextLong(40 * DAY);
            Charge charge = charge(cost).withMaxWait(Duration.ofNanos(wait));
            List<Charge> charges = random.nextBoolean() ? List.of(charge) : List.of(PLAIN, charge);
            Decision decision = store.reserve(charges);
            assertThat(decision).as(step).isEqualTo(java.take(charges, true, server.get()));
            Answer answer = decision.answers().get(charges.size() - 1);
            taken(answer, answer.allowed() ? answer.waitNanos() : answer.retryNanos());
        }

        /** Takes that share one call. */
        private void takeTogether(RedisScriptBucketStore store) {
            ScriptCalls same = store.script();
            Charge charge = charge(1 + random.nextInt((int) Math.min(spec.capacity(), 4)));
            int times = 1 + random.nextInt(4);
            ScriptReply reply = same.startTakes(charge, times).join();
            for (int place = 0; place < reply.decided(times); place++) {
                Answer answer = same.answer(charge, place, reply);
                Decision expected = java.take(List.of(charge), false, server.get());
                assertThat(answer).as(step).isEqualTo(expected.answers().get(0));
                taken(answer, answer.retryNanos());
            }
        }

        private void taken(Answer answer, long waitNanos) {
            long cost = answer.charge().cost();
            if (!isExact()) {
                taken.addAll(answer.allowed() ? List.of(new Taken(answer, null)) : List.of());
                return;
            }
            long now = calendarNanos();
            long end = server.get() + answer.charge().maxWait().toNanos() / 1_000;
            long mayWait = 1_000 * calendar.at(end)
                    - now; // true time may end in a later period than as much of the calendar's
            long exact = oracle.take(counted, cost, now, mayWait);
            assertThat(answer.allowed()).as(step).isEqualTo(exact <= mayWait);
            long period = counted.rate().period().toNanos();
            long due = exact == 0 ? server.get() : start((now + exact) / period);
            assertThat(server.get() + waitNanos / 1_000).as(step).isBetween(due, due + (exact == 0 ? 0 : 4));
            if (answer.allowed()) {
                taken.add(new Taken(answer, oracle.granted(counted, cost, now, now + exact, step)));
            }
        }

        /** Returns the moment at which a period begins in the zone. */
        private long start(long count) {
            LocalDate date =
                    switch (calendar.unit()) {
                        case "day" -> LocalDate.EPOCH.plusDays(count);
                        case "week" -> LocalDate.of(1969, 12, 29).plusWeeks(count);
                        default -> LocalDate.EPOCH.plusMonths(count);
                    };
            return 1_000_000 * date.atStartOfDay(spec.zone()).toEpochSecond();
        }

        private void settle(RedisScriptBucketStore store, Taken back) {
            Charge charge = back.answer.charge();
            RedisBucketState before = java.bucket(charge, server.get());
            long cost = random.nextLong(random.nextBoolean() ? charge.cost() + 1 : 2 * charge.cost() + 1);
            long owed = cost - charge.cost();
            RedisTickScale ticks = before.ticks();
            if (owed > 0 && before.missing() + ticks.price(owed) > ticks.full() + 11 * ticks.perStep()) {
                return; // a debt ends within 365 days, which 11 months are
            }
            if (cost == 0) {
                store.giveBack(List.of(back.answer));
                java.giveBack(List.of(back.answer), server.get());
            } else {
                store.settle(back.answer, cost);
                java.settle(back.answer, cost, server.get());
            }
            if (isExact() && owed > 0) {
                oracle.owed(counted, owed, calendarNanos(), step);
            } else if (isExact()) {
                long returned =
                        before.missing() - java.bucket(charge, server.get()).missing();
                oracle.returned(back.grant, returned, ticks.perToken(), calendarNanos(), step);
            }
        }
    }
}
