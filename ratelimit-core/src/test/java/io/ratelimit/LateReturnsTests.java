package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tokens that are given back late never come on top of those that time has brought. */
class LateReturnsTests {

    private static final BucketSpec SPEC = BucketSpec.of("1/1s").withCapacity(10);

    private final ManualTimeSource time = new ManualTimeSource();

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

    /** Tokens were given back during a debt, so the last promise is later than the bucket's full-again moment shows. */
    @Test
    void aDeniedCallGetsAllBackWhileAnotherCallWaits() {
        BucketStore store = BucketStore.local(time);
        Charge charge = Charge.of(ThrottlePolicy.of("api", SPEC, "user"), "alice", 10);
        Charge empty = Charge.of(ThrottlePolicy.of("empty", SPEC, "user"), "alice", 10);
        Decision first = store.take(List.of(charge, empty));
        Charge waiting = charge.withCost(1).withMaxWait(Duration.ofSeconds(1));
        assertThat(store.reserve(List.of(waiting)).waitFor()).isEqualTo(Duration.ofSeconds(1));
        store.giveBack(first.answers().subList(0, 1));
        assertThat(store.snapshot(charge).available()).isEqualTo(8);
        for (int i = 0; i < 3; i++) {
            assertThat(store.take(List.of(charge.withCost(3), empty.withCost(1)))
                            .allowed())
                    .isFalse();
            assertThat(store.snapshot(charge).available()).isEqualTo(8);
        }
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

    /** 8 tokens of the second second come back, but only as the old rate brings them: none of them is there yet. */
    @Test
    void aSlowerSpecGrantsNoReturnedTokensBeforeTheyWouldHaveCome() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("10/1s"), time);
        assertThat(bucket.tryAcquire(10)).isTrue();
        Reservation first = bucket.reserve(8);
        Reservation second = bucket.reserve(2);
        assertThat(first.cancel()).isTrue();
        bucket.reconfigure(BucketSpec.of("1/1h").withCapacity(10));
        assertThat(bucket.tryAcquire(1)).isFalse();
        assertThat(second.delay()).isEqualTo(Duration.ofSeconds(1));
        time.advance(Duration.ofSeconds(1));
        assertThat(bucket.tryAcquire(1)).isFalse();
        time.advance(Duration.ofHours(1));
        assertThat(bucket.tryAcquire(1)).isTrue();
    }

    /** The smaller bucket is full although the tokens of the take were not brought back by time. */
    @Test
    void tokensThatASmallerCapacityForgivesDoNotComeBack() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/1h").withCapacity(8), time);
        Reservation first = bucket.reserve(5);
        bucket.reconfigure(BucketSpec.of("1/1h").withCapacity(3));
        assertThat(bucket.tryAcquire(3)).isTrue();
        first.cancel();
        assertThat(bucket.snapshot().available()).isZero();
    }
}
