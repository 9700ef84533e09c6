package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.GrantOracle;
import io.ratelimit.LocalBuckets;
import io.ratelimit.Rate;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** A bucket of a {@link JointHistory}. The time of a calendar is one on which all its periods have one length. */
final class JointAccount {

    /** The time that a clock has run through. Steps back don't count: no time is granted twice for them. */
    private static final class Odometer {
        private final LongSupplier clock;
        private long seen;
        private long passed;

        Odometer(LongSupplier clock) {
            this.clock = clock;
            this.seen = clock.getAsLong();
            this.passed = seen;
        }

        long read() {
            long now = clock.getAsLong();
            passed += Math.max(now - seen, 0);
            seen = now;
            return passed;
        }
    }

    final List<BucketSpec> specs;
    final boolean exact;
    final LongAdder checks;
    final CalendarClock calendar;
    final LongSupplier micros;
    private final Odometer odometer;
    final List<Long> ticks;
    final long clockStep;
    GrantOracle oracle;

    /** The spec of the value. */
    BucketSpec written;

    /** The leased tokens that the documentation allows in addition, such as those of a frozen machine. */
    long excused;

    /** The spec from which the value is converted; null if it is its own. */
    @Nullable
    BucketSpec origin;

    int resets;

    /** @param place the place of the bucket; null for one in memory */
    JointAccount(
            List<BucketSpec> specs,
            @Nullable LeasePlace place,
            boolean exact,
            LongAdder checks,
            LongSupplier nanos,
            LongSupplier micros) {
        this.checks = checks;
        this.specs = specs;
        this.exact = exact && specs.size() == 1;
        this.calendar = specs.get(0).refill() == Refill.CALENDAR ? CalendarClock.of(specs.get(0)) : null;
        this.micros = micros;
        this.odometer = new Odometer(calendar != null ? () -> 1_000 * calendar.at(micros.getAsLong()) : nanos);
        this.clockStep = place != null
                ? place.clockStep(specs.get(0))
                : specs.get(0).capacity() >= 100 ? 1_000 : 1; // large rates may need microseconds
        this.ticks = specs.stream()
                .map(spec -> place != null ? place.perToken(spec) : LocalBuckets.perToken(spec))
                .toList();
        this.written = specs.get(0);
        begin();
    }

    /** Returns the time that the clock of the bucket has run through, in nanoseconds. */
    long now() {
        return odometer.read();
    }

    void begin() {
        oracle = new GrantOracle(specs.stream().map(this::counted).toList(), ticks, clockStep, now());
    }

    void reset(long leased) {
        resets++;
        excused = leased;
        origin = null;
        begin();
    }

    /** Counts that the bucket may be forgotten because it is full, and is full under another spec. */
    void forgotten(BucketSpec next) {
        long at = micros.getAsLong();
        long clock = 1_000 * (calendar == null ? at : calendar.at(at));
        if (oracle.forgotten(counted(written), counted(next), clock)) {
            written = next;
        }
    }

    BucketSpec counted(BucketSpec spec) {
        Duration period = calendar == null ? spec.rate().period() : Duration.ofNanos(1_000 * calendar.periodMicros());
        Refill refill = calendar == null ? spec.refill() : Refill.INTERVAL;
        return new BucketSpec(new Rate(spec.rate().tokens(), period), spec.capacity(), refill);
    }

    /** Returns the oracle's moment after a true wait. */
    long after(long waitNanos) {
        long now = now();
        long at = micros.getAsLong();
        return calendar == null || waitNanos == 0
                ? now + waitNanos
                : now + 1_000 * (calendar.at(at + waitNanos / 1_000) - calendar.at(at));
    }

    /** Compares an answer with the exact one, and takes what it says if the whole call is allowed. */
    void check(Answer answer, boolean ahead, boolean allowed, String when) {
        if (!exact) {
            return;
        }
        checks.increment();
        Charge charge = answer.charge();
        String step = when + ": " + answer;
        BucketSpec spec = counted(charge.spec());
        long now = now();
        long wait = oracle.take(spec, charge.cost(), now, -1);
        long mayWait = ahead ? charge.maxWait().toNanos() : 0;
        long due = wait;
        if (calendar != null) {
            long period = spec.rate().period().toNanos();
            due = 1_000 * calendar.microsUntil((now + wait) / period - now / period, micros.getAsLong());
        }
        boolean fits = due <= mayWait;
        assertThat(answer.allowed()).as(step).isEqualTo(fits);
        if (allowed || !fits) {
            assertThat(fits ? answer.waitNanos() : answer.retryNanos())
                    .as(step)
                    .isBetween(due - (calendar == null ? 0 : 1_000), due + (calendar == null ? 0 : 4_000));
        }
        if (allowed) {
            oracle.take(spec, charge.cost(), now, Long.MAX_VALUE);
        }
    }
}
