package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/**
 * G1 by an exact count of ticks: the tokens due from any moment on, less those given back, are never more than
 * the capacity plus the refill since that moment. 1,000 runs of 1,000 steps, with arbitrarily late returns.
 */
class LateReturnsTests {

    private static final BucketSpec SPEC = BucketSpec.of("1/1s").withCapacity(10);

    private final ManualTimeSource time = new ManualTimeSource();

    /** A take, the moment its tokens were due, and the part given back. */
    private static final class Grant {
        private final Reservation reservation;
        private final long due;
        private final long price;
        private long back;

        Grant(Reservation reservation, long due, long price) {
            this.reservation = reservation;
            this.due = due;
            this.price = price;
        }
    }

    @Test
    void tokensOfLongRequestsDoNotSaveUpBeyondTheCapacity() {
        TokenBucket bucket = TokenBucket.of(SPEC, time);
        List<Reservation> late = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            late.add(bucket.reserve(10));
            time.advance(Duration.ofSeconds(10));
        }
        long granted = 0;
        for (Reservation reservation : late) {
            granted += bucket.tryAcquire(10) ? 10 : 0;
            reservation.cancel();
        }
        granted += bucket.tryAcquire(10) ? 10 : 0;
        assertThat(granted).isEqualTo(10);
    }

    @Test
    void aStoreGivesBackOnlyTokensThatTimeHasNotBrought() {
        BucketStore store = BucketStore.local(time);
        Charge charge = Charge.of(ThrottlePolicy.of("api", SPEC, "user"), "alice", 10);
        Decision first = store.take(List.of(charge));
        time.advance(Duration.ofSeconds(4));
        Decision second = store.take(List.of(Charge.of(charge.policy(), "alice", 4)));
        store.giveBack(first.answers());
        assertThat(store.snapshot(charge).available()).isEqualTo(6);
        time.advance(Duration.ofSeconds(4));
        assertThat(store.take(List.of(charge)).allowed()).isTrue();
        store.giveBack(second.answers());
        assertThat(store.snapshot(charge).available()).isZero();
    }

    @Test
    void tokensTakenTogetherComeBackInAnyOrder() {
        TokenBucket bucket = TokenBucket.of(SPEC, time);
        List<Reservation> taken = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            taken.add(bucket.reserve(1));
        }
        for (int i : new int[] {2, 9, 0, 5, 7, 1, 8, 3, 6, 4}) {
            taken.get(i).cancel();
        }
        assertThat(bucket.snapshot().available()).isEqualTo(10);
    }

    /** Interval refill has only whole tokens: a fraction that a conversion cuts off would never be completed. */
    @Test
    void aBucketUsedUnderTwoSpecsInTurnRefills() {
        BucketStore store = BucketStore.local(time);
        BucketSpec greedy = BucketSpec.of("6/1h");
        ThrottlePolicy policy = ThrottlePolicy.of("api", greedy, "user");
        BucketSpec interval = new BucketSpec(Rate.of("6/1h"), 6, Refill.INTERVAL);
        long granted = 0;
        for (int minute = 0; minute < 600; minute++) {
            BucketSpec spec = minute % 2 == 0 ? greedy : interval;
            granted += store.take(List.of(new Charge(policy, spec, "alice", 1))).allowed() ? 1 : 0;
            time.advance(Duration.ofMinutes(1));
        }
        assertThat(granted).isBetween(40L, 6 + 6 * 10L + 6);
    }

    @RepeatedTest(1_000)
    void noIntervalIsGrantedMoreThanCapacityAndRateHoweverLateTokensComeBack(RepetitionInfo info) {
        var random = new SplittableRandom(info.getCurrentRepetition());
        Refill refill = random.nextInt(4) == 0 ? Refill.INTERVAL : Refill.GREEDY;
        Duration period = Duration.ofNanos(random.nextBoolean() ? 1_000_003_000L : 7_000_000);
        BucketSpec spec = new BucketSpec(new Rate(1 + random.nextInt(9), period), 1 + random.nextInt(12), refill);
        TokenBucket bucket = TokenBucket.of(spec, time);
        TickScale scale = bucket.state().scale();
        long token = period.toNanos() / spec.rate().tokens();
        List<Grant> grants = new ArrayList<>();
        for (int i = 0; i < 1_000; i++) {
            if (random.nextInt(3) == 0) {
                time.advance(Duration.ofNanos(random.nextLong(2 * token + 2)));
            }
            if (random.nextInt(5) < 2 && !grants.isEmpty()) {
                int last = grants.size() - 1;
                giveBack(bucket, grants.get(last - random.nextInt(Math.min(last + 1, 30))));
            } else {
                long cost = 1 + random.nextLong(spec.capacity());
                Duration wait = Duration.ofNanos(random.nextInt(3) > 0 ? 0 : random.nextLong(5 * token));
                Reservation reservation = bucket.reserve(cost, wait);
                if (reservation.decision().allowed()) {
                    long due = Math.max(bucket.state().fullAt() - scale.full(), scale.at(time.nanoTime()));
                    grants.add(new Grant(reservation, due, scale.price(cost)));
                }
            }
            check(bucket, grants, "seed %d, step %d, %s".formatted(info.getCurrentRepetition(), i, spec));
        }
    }

    private void giveBack(TokenBucket bucket, Grant grant) {
        long before = bucket.state().missing(time.nanoTime());
        grant.reservation.cancel();
        grant.back += before - bucket.state().missing(time.nanoTime());
        assertThat(grant.back).isBetween(0L, grant.price);
    }

    /** Counts from each due moment on. The last grants suffice, since the full-again moment is never further away. */
    private void check(TokenBucket bucket, List<Grant> grants, String step) {
        TickScale scale = bucket.state().scale();
        long fullAt = Math.max(bucket.state().fullAt(), scale.at(time.nanoTime()));
        int first = Math.max(grants.size() - 40, 0);
        for (int from = first; from < grants.size(); from++) {
            long moment = grants.get(from).due;
            long granted = 0;
            for (int i = first; i < grants.size(); i++) {
                Grant grant = grants.get(i);
                granted += grant.due - moment >= 0 ? grant.price - grant.back : 0;
            }
            if (granted > Math.max(fullAt - moment, 0)) {
                throw new AssertionError(
                        "%s: %d ticks granted since %d, full at %d".formatted(step, granted, moment, fullAt));
            }
        }
    }
}
