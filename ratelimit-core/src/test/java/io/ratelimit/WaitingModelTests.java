package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import java.math.BigInteger;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;

/**
 * G1 with whole numbers, over random runs of taking, taking ahead, cancelling, giving back and changing the spec.
 * The tokens due in any interval, less those returned in it, are at most the capacity plus the refill, within one clock
 * step. And a return never exceeds that of {@code CancelAt} in Go's x/time/rate.
 */
class WaitingModelTests {

    private static final long[] PERIODS = {999_000, 1_000_003_000, 7_000_000_000L, 86_400_000_000_000L};

    private static final long SECOND = 1_000_000_000;

    private final ManualTimeSource time = new ManualTimeSource();
    private final List<Event> events = new ArrayList<>();

    /** Tokens granted at a moment; below zero for returned tokens. */
    private record Event(long nanos, long tokens) {}

    /** A reservation that may still be cancelled. */
    private record Waiter(Reservation reservation, long cost, long due) {}

    /** Granted tokens × period of the rate, so that nothing is rounded. */
    private void checkEveryInterval(Rate rate, long capacity, long step, String run) {
        List<Event> sorted =
                events.stream().sorted(Comparator.comparingLong(Event::nanos)).toList();
        BigInteger period = BigInteger.valueOf(rate.period().toNanos());
        for (int first = 0; first < sorted.size(); first++) {
            long granted = 0;
            for (int last = first; last < sorted.size(); last++) {
                granted += sorted.get(last).tokens;
                if (last + 1 < sorted.size() && sorted.get(last + 1).nanos == sorted.get(last).nanos) {
                    continue;
                }
                long length = sorted.get(last).nanos - sorted.get(first).nanos;
                BigInteger max = BigInteger.valueOf(capacity)
                        .multiply(period)
                        .add(BigInteger.valueOf(rate.tokens())
                                .multiply(BigInteger.valueOf(length).add(BigInteger.valueOf(step))));
                assertThat(BigInteger.valueOf(granted).multiply(period))
                        .as("%s: %d granted in %d ns from %d", run, granted, length, sorted.get(first).nanos)
                        .isLessThanOrEqualTo(max);
            }
        }
    }

    /** A random spec whose rate fits nanoseconds, or with small batches, so that a clock step brings few tokens. */
    private static BucketSpec randomSpec(SplittableRandom random) {
        Refill refill = random.nextInt(4) == 0 ? Refill.INTERVAL : Refill.GREEDY;
        long tokens = 1 + random.nextInt(refill == Refill.INTERVAL ? 2 : 24);
        Duration period = Duration.ofNanos(PERIODS[random.nextInt(PERIODS.length)]);
        return new BucketSpec(new Rate(tokens, period), 1 + random.nextInt(12), refill);
    }

    /** Returns a slightly different spec, so that the bound by the greatest rate and capacity stays tight. */
    private static BucketSpec changed(BucketSpec spec, SplittableRandom random) {
        Rate rate = new Rate(1 + random.nextInt(3), spec.rate().period());
        return new BucketSpec(rate, Math.max(spec.capacity() - 1 + random.nextInt(3), 1), spec.refill());
    }

    private static long step(BucketSpec spec) {
        return spec.refill() == Refill.INTERVAL ? spec.rate().period().toNanos() : 1;
    }

    /** Returns about the time of one token. */
    private void pass(BucketSpec spec, SplittableRandom random) {
        long token = spec.rate().period().toNanos() / spec.rate().tokens();
        time.advance(Duration.ofNanos(random.nextInt(4) > 0 ? 0 : random.nextLong(3 * token + 2)));
    }

    private void granted(long nanos, long tokens) {
        events.add(new Event(nanos, tokens));
    }

    private void reserve(TokenBucket bucket, long cost, List<Waiter> line) {
        Reservation reservation = bucket.reserve(cost);
        if (reservation.decision().allowed()) {
            line.add(new Waiter(
                    reservation, cost, time.nanoTime() + reservation.decision().waitNanos()));
        }
    }

    /** Moves the reservations that are due to the grants; they can't be cancelled any more. */
    private void serve(List<Waiter> line) {
        line.removeIf(waiting -> {
            boolean due = waiting.due <= time.nanoTime();
            if (due) {
                granted(waiting.due, waiting.cost);
            }
            return due;
        });
    }

    @RepeatedTest(300)
    void noIntervalIsServedMoreThanCapacityAndRate(RepetitionInfo info) {
        run(info.getCurrentRepetition(), false);
    }

    /** Across a change the greater rate and the greater capacity count. */
    @RepeatedTest(300)
    void noIntervalIsServedMoreThanCapacityAndRateOverChangesOfTheSpec(RepetitionInfo info) {
        run(info.getCurrentRepetition(), true);
    }

    private void run(long seed, boolean reconfigured) {
        var random = new SplittableRandom(seed);
        BucketSpec spec = reconfigured ? changed(randomSpec(random), random) : randomSpec(random);
        Rate fastest = spec.rate();
        long largest = spec.capacity();
        long step = step(spec);
        TokenBucket bucket = TokenBucket.of(spec, time);
        List<Waiter> line = new ArrayList<>();
        for (int i = 0; i < 150; i++) {
            pass(spec, random);
            serve(line);
            long cost = 1 + random.nextLong(spec.capacity());
            switch (random.nextInt(reconfigured ? 12 : 10)) {
                case 0, 1 -> {
                    if (bucket.tryAcquire(cost)) {
                        granted(time.nanoTime(), cost);
                    }
                }
                case 2, 3, 4, 5 -> reserve(bucket, random.nextBoolean() ? cost : spec.capacity(), line);
                case 6 -> giveBack(bucket, cost);
                case 7, 8, 9 -> {
                    if (!line.isEmpty()) {
                        leave(line, random);
                    }
                }
                default -> {
                    spec = changed(spec, random);
                    fastest = faster(fastest, spec.rate());
                    largest = Math.max(largest, spec.capacity());
                    step = Math.max(step, step(spec));
                    bucket.reconfigure(spec);
                }
            }
        }
        line.forEach(waiting -> granted(waiting.due, waiting.cost));
        checkEveryInterval(fastest, largest, step, "seed " + seed);
    }

    /** Cancels one of the last few reservations: earlier ones return nothing. */
    private static void leave(List<Waiter> line, SplittableRandom random) {
        int last = line.size() - 1;
        line.remove(last - random.nextInt(Math.min(last + 1, 3))).reservation.cancel();
    }

    /** Returns the tokens that came back: the difference of the snapshots. */
    private void giveBack(TokenBucket bucket, long cost) {
        long before = bucket.snapshot().available();
        bucket.giveBack(cost);
        long back = bucket.snapshot().available() - before;
        granted(time.nanoTime(), -back);
    }

    private static Rate faster(Rate one, Rate other) {
        BigInteger first = BigInteger.valueOf(one.tokens())
                .multiply(BigInteger.valueOf(other.period().toNanos()));
        BigInteger second = BigInteger.valueOf(other.tokens())
                .multiply(BigInteger.valueOf(one.period().toNanos()));
        return first.compareTo(second) >= 0 ? one : other;
    }

    /**
     * The rule of CancelAt: the reserved tokens less the time from their moment to the last event. The last event is the
     * last reserved moment, or the one before it if the last one is cancelled, unless it is past.
     */
    private void compareWithGo(long seed, boolean same, boolean lastOnly) {
        var random = new SplittableRandom(seed);
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/1s").withCapacity(10), time);
        assertThat(bucket.tryAcquire(10)).isTrue();
        List<Waiter> line = new ArrayList<>();
        long lastEvent = 0;
        for (int i = 0; i < 100; i++) {
            time.advance(Duration.ofSeconds(random.nextInt(4) > 0 ? 0 : random.nextInt(3)));
            line.removeIf(waiting -> waiting.due <= time.nanoTime());
            if (line.isEmpty() || random.nextInt(3) > 0) {
                reserve(bucket, same ? 3 : 1 + random.nextInt(10), line);
                lastEvent = line.get(line.size() - 1).due;
                continue;
            }
            Waiter leaving = line.remove(lastOnly ? line.size() - 1 : random.nextInt(line.size()));
            long go = Math.max(leaving.cost * SECOND - (lastEvent - leaving.due), 0);
            long eventBefore = leaving.due - leaving.cost * SECOND;
            lastEvent = leaving.due == lastEvent && eventBefore >= time.nanoTime() ? eventBefore : lastEvent;
            Duration before = bucket.snapshot().resetAfter();
            leaving.reservation.cancel();
            long back = before.minus(bucket.snapshot().resetAfter()).toNanos();
            assertThat(back).as("seed %d, step %d", seed, i).isBetween(same || lastOnly ? go : 0, go);
        }
    }

    @RepeatedTest(50)
    void neverGivesBackMoreThanGo(RepetitionInfo info) {
        compareWithGo(info.getCurrentRepetition(), false, false);
    }

    @RepeatedTest(50)
    void givesBackAsMuchAsGoIfTheLastCallLeaves(RepetitionInfo info) {
        compareWithGo(info.getCurrentRepetition(), false, true);
    }

    @RepeatedTest(50)
    void givesBackAsMuchAsGoIfAllCallsCostTheSame(RepetitionInfo info) {
        compareWithGo(info.getCurrentRepetition(), true, false);
    }
}
