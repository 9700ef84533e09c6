package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Decision.Outcome;
import java.math.BigInteger;
import java.time.Duration;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;

/**
 * Compares the bucket with an exact model in rational numbers, over random specs of the domain and any start of the
 * clock. Answers, tokens left and retry times are the same to the last token and nanosecond.
 */
class TokenBucketModelTests {

    private static final int STEPS = 2_000;
    private static final long YEAR = Duration.ofDays(365).toNanos();
    private static final long LONGEST_RUN = 200 * YEAR;

    @RepeatedTest(200)
    void agreesWithAnExactRationalModel(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = Specs.randomSpec(random);
        Clock clock = new Clock(randomStart(random));
        TokenBucket bucket = TokenBucket.of(spec, clock);
        Model model = new Model(spec, bucket.snapshot().rate(), clock.nanos);
        for (int i = 0; i < STEPS && clock.passed() < LONGEST_RUN; i++) {
            String step = "seed %d, step %d: %s".formatted(run.getCurrentRepetition(), i, spec);
            pass(randomStep(spec, random), clock, model);
            if (random.nextInt(8) == 0) {
                long tokens = Specs.upTo(spec.capacity(), random);
                bucket.giveBack(tokens);
                model.giveBack(tokens);
                continue;
            }
            long cost = Specs.upTo(random.nextInt(4) == 0 ? 2 * spec.capacity() : spec.capacity(), random);
            Decision decision = bucket.decide(cost);
            long retry = model.retryNanos(cost);
            compare(decision, model, cost, step);
            if (decision.outcome() == Outcome.DENIED && random.nextBoolean()) {
                pass(retry - 1, clock, model);
                compare(bucket.decide(cost), model, cost, step + ", just before the retry time");
                assertThat(decision.retryNanos()).isEqualTo(retry);
                pass(1, clock, model);
                assertThat(bucket.snapshot().available()).as(step).isEqualTo(model.available());
                assertThat(bucket.tryAcquire(cost)).as(step).isTrue();
                model.take(cost);
            }
        }
    }

    private static void compare(Decision decision, Model model, long cost, String step) {
        Outcome outcome = model.outcome(cost);
        assertThat(decision.outcome()).as(step).isEqualTo(outcome);
        assertThat(decision.retryNanos()).as(step).isEqualTo(outcome == Outcome.DENIED ? model.retryNanos(cost) : 0);
        if (outcome == Outcome.ALLOWED) {
            model.take(cost);
        }
        long available = model.available();
        assertThat(decision.remaining()).as(step).isEqualTo(available);
        assertThat(decision.resetNanos()).as(step).isEqualTo(model.retryNanos(model.capacity));
        assertThat(decision.nextTokenNanos())
                .as(step)
                .isEqualTo(available == model.capacity ? 0 : model.retryNanos(available + 1));
    }

    private static void pass(long nanos, Clock clock, Model model) {
        clock.nanos += nanos;
        model.pass(nanos);
    }

    private static long randomStart(SplittableRandom random) {
        long[] starts = {0, -1, -1_000_000_007, Long.MAX_VALUE - 5_000_000_000L, Long.MAX_VALUE, Long.MIN_VALUE};
        int chosen = random.nextInt(starts.length + 2);
        return chosen < starts.length ? starts[chosen] : random.nextLong();
    }

    /** A random step: zero, about a token's time, about a bucket's time, or rarely years. */
    private static long randomStep(BucketSpec spec, SplittableRandom random) {
        long token = Math.max(spec.rate().period().toNanos() / spec.rate().tokens(), 1);
        long full = spec.timeToFull().toNanos();
        return switch (random.nextInt(100)) {
            case 0 -> random.nextLong(YEAR);
            case 1, 2, 3 -> random.nextLong(full + 1);
            case 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 -> 0;
            case 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 -> random.nextLong(3_000);
            default -> random.nextInt(3) == 0 ? Specs.upTo(full, random) : random.nextLong(3 * token);
        };
    }

    private static final class Clock implements TimeSource {
        private final long start;
        private long nanos;

        Clock(long start) {
            this.start = start;
            this.nanos = start;
        }

        long passed() {
            return nanos - start;
        }

        @Override
        public long nanoTime() {
            return nanos;
        }
    }

    /** Tokens × period, so that nothing is rounded; the clock is cut to its steps, as in G1. */
    private static final class Model {
        private final long capacity;
        private final BigInteger tokens;
        private final BigInteger period;
        private final BigInteger full;
        private final long stepNanos;
        private long sinceStep;
        private BigInteger level;

        Model(BucketSpec spec, Rate rate, long startNanos) {
            capacity = spec.capacity();
            tokens = BigInteger.valueOf(rate.tokens());
            period = BigInteger.valueOf(rate.period().toNanos());
            full = BigInteger.valueOf(capacity).multiply(period);
            stepNanos = stepNanos(spec, rate);
            sinceStep = Math.floorMod(startNanos, stepNanos);
            level = full;
        }

        /** One clock step: a period for interval refill, a nanosecond if it fits the rate, else a microsecond. */
        private long stepNanos(BucketSpec spec, Rate rate) {
            if (spec.refill() == Refill.INTERVAL) {
                return rate.period().toNanos();
            }
            boolean ofNanos = tokens.divide(tokens.gcd(period)).longValueExact() <= 24;
            return ofNanos && rate.equals(spec.rate()) ? 1 : 1_000;
        }

        void pass(long nanos) {
            long passed = sinceStep + nanos;
            level = level.add(tokens.multiply(BigInteger.valueOf(passed - passed % stepNanos)))
                    .min(full);
            sinceStep = passed % stepNanos;
        }

        Outcome outcome(long cost) {
            if (cost > capacity) {
                return Outcome.NEVER_FITS;
            }
            return level.compareTo(price(cost)) >= 0 ? Outcome.ALLOWED : Outcome.DENIED;
        }

        /** The time until the level is as high as the cost. */
        long retryNanos(long cost) {
            BigInteger missing = price(cost).subtract(level);
            if (missing.signum() <= 0) {
                return 0;
            }
            BigInteger perStep = tokens.multiply(BigInteger.valueOf(stepNanos));
            BigInteger steps = missing.add(perStep).subtract(BigInteger.ONE).divide(perStep);
            return steps.multiply(BigInteger.valueOf(stepNanos)).longValueExact() - sinceStep;
        }

        void take(long cost) {
            level = level.subtract(price(cost));
        }

        void giveBack(long cost) {
            level = level.add(price(cost)).min(full);
        }

        long available() {
            return level.divide(period).longValueExact();
        }

        private BigInteger price(long cost) {
            return BigInteger.valueOf(cost).multiply(period);
        }
    }
}
