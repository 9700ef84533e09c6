package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The contract of the guaranteed shares of a store, held against the model in {@code proofs/shares.py}. */
public abstract class SharesContract {

    private static final BucketSpec POOL = BucketSpec.of("10/s").withCapacity(20);
    private static final BucketSpec LANE = BucketSpec.of("1/s").withCapacity(3);

    protected abstract BucketStore store();

    protected abstract void advance(Duration time);

    /** Returns how many random histories a test runs. */
    protected abstract int histories();

    protected static ThrottlePolicy tenants(int keys) {
        return ThrottlePolicy.of("api", POOL).withShares(Shares.forKeys(LANE, keys, List.of("header:tenant")));
    }

    protected Decision take(ThrottlePolicy policy, @Nullable String tenant, long cost) {
        Charge charge = Charge.of(policy, "", cost);
        return store().take(List.of(tenant == null ? charge : charge.guaranteedTo(tenant)));
    }

    protected void drain(ThrottlePolicy policy, long reserve) {
        assertThat(take(policy, null, POOL.capacity() - reserve).allowed()).isTrue();
        assertThat(take(policy, null, 1).allowed()).isFalse();
    }

    /** Returns the tokens of the pool, with those of the reserve. */
    private long tokens(ThrottlePolicy policy) {
        Charge charge = Charge.of(policy, "", 1).withShare(new Share("", null, 0, 1));
        return store().snapshot(charge).available();
    }

    @Test
    void whatIsGuaranteedIsNotAvailableToAll() {
        ThrottlePolicy policy = tenants(4);
        Charge charge = Charge.of(policy, "", 1);
        assertThat(store().snapshot(charge).available()).isEqualTo(8);
        assertThat(store().snapshot(charge).capacity()).isEqualTo(20);
        drain(policy, 12);
        assertThat(take(policy, "bob", 2).allowed()).isTrue();
        assertThat(store().snapshot(charge).available()).isZero();
        assertThat(store().snapshot(charge).nextTokenAfter()).isEqualTo(Duration.ofMillis(300));
        assertThat(store().snapshot(charge).resetAfter()).isEqualTo(Duration.ofSeconds(1));
    }

    @Test
    void allUseTheLimitButForTheReserve() {
        ThrottlePolicy policy = tenants(4);
        for (int i = 0; i < 8; i++) {
            Decision decision = take(policy, i % 2 == 0 ? "alice" : null, 1);
            assertThat(decision.allowed()).isTrue();
            assertThat(decision.answers().get(0).isGuaranteed()).isFalse();
            assertThat(decision.remaining()).isEqualTo(7 - i);
        }
        Decision denied = take(policy, null, 1);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.remaining()).isZero();
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofMillis(100));
    }

    @Test
    void aKeyHasItsShareWhenOthersHaveTakenTheRest() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        for (int i = 0; i < 3; i++) {
            Answer served = take(policy, "bob", 1).answers().get(0);
            assertThat(served.allowed()).isTrue();
            assertThat(served.isGuaranteed()).isTrue();
            assertThat(served.spec()).isEqualTo(LANE);
            assertThat(served.remaining()).isEqualTo(2 - i);
        }
        assertThat(take(policy, "bob", 1).allowed()).isFalse();
        assertThat(take(policy, "carol", 3).allowed()).isTrue();
        assertThat(take(policy, null, 1).allowed()).isFalse();
    }

    @Test
    void aDenialNamesTheSoonerOfBothMoments() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        Decision pool = take(policy, "bob", 1); // the pool is short of four tokens, the lane of one
        assertThat(pool.retryAfter()).isEqualTo(Duration.ofMillis(400));
        assertThat(pool.answers().get(0).isGuaranteed()).isFalse();
        assertThat(take(policy, "carol", 3).allowed()).isTrue();
        assertThat(take(policy, "dave", 3).allowed()).isTrue();
        assertThat(take(policy, "erin", 3).allowed()).isTrue();
        advance(Duration.ofMillis(500));
        Decision lane = take(policy, "bob", 1); // the pool is short of eight tokens, the lane of a half
        assertThat(lane.retryAfter()).isEqualTo(Duration.ofMillis(500));
        assertThat(lane.answers().get(0).isGuaranteed()).isTrue();
    }

    @Test
    void aCostBeyondWhatAllShareAndTheShareNeverFits() {
        ThrottlePolicy policy = tenants(6);
        assertThat(take(policy, null, 2).outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(take(policy, "bob", 3).outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(take(policy, "bob", 3).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(take(policy, "bob", 4).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(take(policy, null, 3).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(take(policy, null, Long.MAX_VALUE).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    @Test
    void aKeyWithoutAPlaceIsDeniedForATimeIfAllIsGuaranteed() {
        ThrottlePolicy policy = ThrottlePolicy.of("api", POOL.withCapacity(6))
                .withShares(Shares.forKeys(LANE, 2, List.of("header:tenant")));
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        assertThat(take(policy, "carol", 2).allowed()).isTrue();
        Decision denied = take(policy, "dave", 2);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofSeconds(2));
        assertThat(denied.answers().get(0).spec()).isEqualTo(LANE);
        assertThat(take(policy, "dave", 4).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(take(policy, null, 1).outcome()).isEqualTo(Outcome.NEVER_FITS);
        advance(Duration.ofSeconds(2));
        assertThat(take(policy, "dave", 2).allowed()).isTrue();
    }

    @Test
    void aShareWithTokensIsLateOnlyUntilTheDebtOfAllIsPaid() {
        ThrottlePolicy policy = tenants(4);
        Answer taken = take(policy, null, 8).answers().get(0);
        store().settle(taken, 20);
        Decision denied = take(policy, "bob", 2);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofMillis(200));
        advance(Duration.ofMillis(200));
        assertThat(take(policy, "bob", 2).allowed()).isTrue();
    }

    @Test
    void noMoreKeysHaveSharesThanThereAre() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        assertThat(take(policy, "bob", 1).allowed()).isTrue();
        assertThat(take(policy, "carol", 2).allowed()).isTrue();
        assertThat(take(policy, "dave", 1).allowed()).isFalse();
        assertThat(take(policy, "bob", 1).allowed()).isTrue();
        assertThat(take(policy, "carol", 1).allowed()).isTrue();
    }

    @Test
    void keysThatTakeNothingTakeNoRoom() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        for (int i = 0; i < 10; i++) {
            assertThat(take(policy, "key" + i, 4).allowed()).isFalse();
        }
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        assertThat(take(policy, "carol", 3).allowed()).isTrue();
    }

    /** A client that chooses its key can hold all places, but no more than these, and only while it takes from all of them. */
    @Test
    void inventedKeysHoldOnlyThePlacesThatTheyUse() {
        ThrottlePolicy policy = tenants(4);
        long allowed = 0;
        for (int i = 0; i < 100; i++) {
            allowed += take(policy, "key" + i, 1).allowed() ? 1 : 0;
        }
        assertThat(allowed).isEqualTo(8 + 4);
        for (int i = 8; i < 12; i++) {
            assertThat(take(policy, "key" + i, 2).allowed()).isTrue();
        }
        for (int second = 0; second < 5; second++) { // a token of each share comes back, and is taken again
            advance(Duration.ofSeconds(1));
            drainAgain(policy);
            assertThat(take(policy, "bob", 1).allowed()).isFalse();
            for (int i = 8; i < 12; i++) {
                assertThat(take(policy, "key" + i, 1).allowed()).isTrue();
            }
        }
        advance(Duration.ofSeconds(3));
        drainAgain(policy);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
    }

    @Test
    void aFullShareMakesRoomForAnotherKey() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        assertThat(take(policy, "bob", 1).allowed()).isTrue();
        assertThat(take(policy, "carol", 2).allowed()).isTrue();
        advance(Duration.ofSeconds(1));
        drainAgain(policy);
        assertThat(take(policy, "dave", 3).allowed()).isTrue();
        assertThat(take(policy, "erin", 1).allowed()).isFalse();
    }

    protected void drainAgain(ThrottlePolicy policy) {
        while (take(policy, null, 1).allowed()) {}
    }

    @Test
    void aLongKeyHasAShareOfItsOwn() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        assertThat(take(policy, "x".repeat(5_000), 3).allowed()).isTrue();
        assertThat(take(policy, "x".repeat(5_000), 1).allowed()).isFalse();
        assertThat(take(policy, "x".repeat(5_000) + "y", 3).allowed()).isTrue();
    }

    @Test
    void aNameLeavesItsPartToOthers() {
        ThrottlePolicy policy =
                ThrottlePolicy.of("api", POOL).withShares(Shares.named(Map.of("checkout", LANE), Map.of("batch", 33)));
        long batch = 0;
        while (take(Charge.of(policy, "batch", "", 1)).allowed()) {
            batch++;
        }
        assertThat(batch).isEqualTo(13); // 33% of 20 tokens are 7 whole ones
        assertThat(take(Charge.of(policy, "other", "", 4)).allowed()).isTrue();
        assertThat(take(Charge.of(policy, "other", "", 1)).allowed()).isFalse();
        assertThat(take(Charge.of(policy, "checkout", "", 3)).allowed()).isTrue();
        assertThat(take(Charge.of(policy, "checkout", "", 1)).allowed()).isFalse();
    }

    private Decision take(Charge... charges) {
        return store().take(List.of(charges));
    }

    @Test
    void aCallOverSeveralLimitsTakesAllOrNothing() {
        ThrottlePolicy policy = tenants(4);
        ThrottlePolicy other = ThrottlePolicy.of("other", BucketSpec.of("1/m"));
        drain(policy, 12);
        Charge share = Charge.of(policy, "", 2).guaranteedTo("bob");
        assertThat(take(Charge.of(other, "", 1), share).allowed()).isTrue();
        Decision denied = take(share.withCost(1), Charge.of(other, "", 1));
        assertThat(denied.allowed()).isFalse();
        assertThat(denied.answers().get(0).allowed()).isTrue();
        assertThat(denied.answers().get(0).isGuaranteed()).isTrue();
        assertThat(store().snapshot(share).available()).isEqualTo(1);
        assertThat(tokens(policy)).isEqualTo(10);
        Decision both = take(Charge.of(other, "", 1), share);
        assertThat(both.denials()).hasSize(2);
    }

    @Test
    void tokensComeBackToTheShareAndToAll() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        Decision decision = take(policy, "bob", 3);
        store().giveBack(decision.taken());
        assertThat(tokens(policy)).isEqualTo(12);
        assertThat(take(policy, "bob", 3).answers().get(0).isGuaranteed()).isTrue();
    }

    @Test
    void aShareGetsBackNoMoreThanTheLimit() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        Decision decision = take(policy, "bob", 3);
        advance(Duration.ofMillis(900)); // time pays for the eight tokens before, and for one of the three
        store().giveBack(decision.taken());
        Charge bob = Charge.of(policy, "", 1).guaranteedTo("bob");
        assertThat(tokens(policy)).isEqualTo(20);
        assertThat(store().snapshot(bob).available()).isEqualTo(2);
        assertThat(store().snapshot(bob).nextTokenAfter()).isEqualTo(Duration.ofMillis(100));
    }

    @Test
    void aLowerCostComesBackToTheShare() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        Answer taken = take(policy, "bob", 3).answers().get(0);
        store().settle(taken, 1);
        assertThat(store().snapshot(taken.charge()).available()).isEqualTo(2);
        assertThat(tokens(policy)).isEqualTo(11);
    }

    @Test
    void aHigherCostIsOwedByAllAndEmptiesTheShare() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        Answer taken = take(policy, "bob", 1).answers().get(0);
        store().settle(taken, 5);
        assertThat(store().snapshot(taken.charge()).available()).isZero();
        assertThat(tokens(policy)).isEqualTo(7);
        advance(Duration.ofSeconds(1));
        assertThat(store().snapshot(taken.charge()).available()).isEqualTo(1);
    }

    @Test
    void aResetFillsAllShares() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        store().reset(Charge.of(policy, "", 1));
        drain(policy, 12);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
    }

    @Test
    void anotherRateKeepsTheShares() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        assertThat(take(policy, "bob", 2).allowed()).isTrue();
        ThrottlePolicy slower = policy.withSpec(POOL.with(Rate.of("4/s"), 15));
        assertThat(take(slower, "bob", 2).allowed()).isFalse();
        assertThat(take(slower, "bob", 1).allowed()).isTrue();
        assertThat(take(slower, "carol", 3).allowed()).isTrue();
        assertThat(take(slower, "dave", 3).allowed()).isTrue();
        assertThat(take(slower, "erin", 3).allowed()).isTrue();
    }

    @Test
    void otherSharesKeepTheDebtOfAKey() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        ThrottlePolicy larger =
                policy.withShares(Shares.forKeys(BucketSpec.of("1/s").withCapacity(4), 3, List.of("header:tenant")));
        advance(Duration.ofSeconds(1));
        drainAgain(larger);
        assertThat(take(larger, "bob", 3).allowed()).isFalse();
        assertThat(take(larger, "bob", 1).allowed()).isTrue();
    }

    /** A change of the histories that breaks the guarantee. */
    protected enum Mutant {
        NONE,
        RESERVE_ONE_TOKEN_TOO_SMALL
    }

    @Test
    void noGuaranteeIsBrokenAndEachAnswerIsThatOfTheModel() {
        int own = 0;
        for (int seed = 0; seed < histories(); seed++) {
            History history = new History(seed, Mutant.NONE);
            history.runByTheModel();
            assertThat(history.broken).as("seed %d", seed).isZero();
            own += history.own;
        }
        assertThat(own).isGreaterThan(3 * histories());
    }

    @Test
    void noGuaranteeIsBrokenByReturns() {
        assertThat(brokenByReturns(Mutant.NONE, (taken, mayTake) -> {})).isZero();
    }

    @Test
    void aReserveOfOneTokenLessBreaksGuarantees() {
        assertThat(brokenByReturns(Mutant.RESERVE_ONE_TOKEN_TOO_SMALL, (taken, mayTake) -> {}))
                .isPositive();
    }

    /** @param returned is called after each return */
    protected int brokenByReturns(Mutant mutant, BiConsumer<Answer, BucketStore> returned) {
        int broken = 0;
        for (int seed = 0; seed < histories(); seed++) {
            History history = new History(seed, mutant);
            history.runWithReturns(returned);
            broken += history.broken;
        }
        return broken;
    }

    /** A bucket of the model: one of its ticks comes back each millisecond. */
    private static final class ModelBucket {

        private final long price;
        private final long full;
        private long missing;

        ModelBucket(long price, long capacity) {
            this.price = price;
            this.full = price * capacity;
        }

        boolean has(long tokens) {
            return missing + tokens * price <= full;
        }

        void take(long tokens) {
            missing += tokens * price;
        }

        void pass(long ticks) {
            missing = Math.max(missing - ticks, 0);
        }
    }

    /** A random history of one pool and its lanes. */
    private final class History {

        private final String name;
        private final SplittableRandom random;
        private final Mutant mutant;
        private final long poolPrice;
        private final ModelBucket pool;
        private final List<ModelBucket> lanes = new ArrayList<>();
        private final List<Long> capacities = new ArrayList<>();
        private final ThrottlePolicy policy;
        private final long reserve;
        private int own;
        private int broken;

        History(int seed, Mutant mutant) {
            name = "seed " + seed;
            random = new SplittableRandom(seed);
            this.mutant = mutant;
            int n = 1 + random.nextInt(6);
            poolPrice = new int[] {1, 3, 7, 10}[random.nextInt(4)];
            long[] weights = random.longs(n, 1, 10).toArray();
            long sum = Arrays.stream(weights).sum();
            Map<String, BucketSpec> guaranteed = new HashMap<>();
            long reserved = 0;
            for (int i = 0; i < n; i++) {
                long price = (poolPrice * sum + weights[i] - 1) / weights[i];
                long capacity = 1 + random.nextInt(12);
                guaranteed.put("lane" + i, spec(price, capacity));
                lanes.add(new ModelBucket(price, capacity));
                capacities.add(capacity);
                reserved += capacity;
            }
            reserve = reserved;
            long capacity = reserve + random.nextInt(41);
            pool = new ModelBucket(poolPrice, capacity);
            policy = ThrottlePolicy.of(
                            mutant.name().toLowerCase(Locale.ROOT).replace('_', '-') + seed, spec(poolPrice, capacity))
                    .withShares(Shares.named(guaranteed, Map.of()));
        }

        private static BucketSpec spec(long price, long capacity) {
            return new BucketSpec(new Rate(1, Duration.ofMillis(price)), capacity, BucketSpec.Refill.GREEDY);
        }

        private void pass() {
            double mode = random.nextDouble();
            long capacity = pool.full / poolPrice;
            long ticks = mode < .5
                    ? 0
                    : mode < .93
                            ? random.nextLong(3 * poolPrice + 1)
                            : random.nextLong((mode < .98 ? 1 : 60) * poolPrice * capacity + 1);
            if (ticks > 0) {
                advance(Duration.ofMillis(ticks));
                pool.pass(ticks);
                lanes.forEach(lane -> lane.pass(ticks));
            }
        }

        private Charge charge() {
            int lane = random.nextInt(2 * lanes.size() + 1) / 2;
            boolean common = lane == lanes.size();
            long most = common ? new long[] {1, 1, 4, pool.full / poolPrice}[random.nextInt(4)] : capacities.get(lane);
            long cost = 1 + random.nextLong(most);
            Charge charge = Charge.of(policy, common ? "common" : "lane" + lane, "", cost);
            Share share = charge.share();
            return mutant == Mutant.NONE || share == null
                    ? charge
                    : charge.withShare(new Share(share.key(), share.guaranteed(), share.leave() - 1, share.lanes()));
        }

        private @Nullable ModelBucket lane(Charge charge) {
            Share share = charge.share();
            return share == null || share.guaranteed() == null
                    ? null
                    : lanes.get(Integer.parseInt(share.key().substring("lane".length())));
        }

        void runByTheModel() {
            int steps = 20 + random.nextInt(100);
            for (int i = 0; i < steps; i++) {
                pass();
                Charge charge = charge();
                ModelBucket lane = lane(charge);
                Answer answer = store().take(List.of(charge)).answers().get(0);
                boolean borrows = pool.has(charge.cost() + reserve);
                boolean owns = !borrows && lane != null && lane.has(charge.cost());
                broken += owns && !pool.has(charge.cost()) ? 1 : 0;
                assertThat(answer.allowed()).as("%s, step %d", name, i).isEqualTo(borrows || owns);
                if (answer.allowed()) {
                    assertThat(answer.isGuaranteed()).as("%s, step %d", name, i).isEqualTo(owns);
                    pool.take(charge.cost());
                }
                if (owns) {
                    own++;
                    lane.take(charge.cost());
                }
            }
        }

        void runWithReturns(BiConsumer<Answer, BucketStore> returned) {
            List<Answer> open = new ArrayList<>();
            int steps = 20 + random.nextInt(100);
            for (int i = 0; i < steps; i++) {
                pass();
                if (!open.isEmpty() && random.nextInt(4) == 0) {
                    Answer back = open.remove(random.nextInt(open.size()));
                    store().giveBack(List.of(back));
                    returned.accept(back, store());
                    continue;
                }
                Charge charge = charge();
                Answer answer = store().take(List.of(charge)).answers().get(0);
                if (answer.isGuaranteed() && answer.allowed()) {
                    open.add(answer);
                    own++;
                }
                if (!answer.allowed() && lane(charge) != null) {
                    broken += store().snapshot(charge).available() >= charge.cost() ? 1 : 0;
                }
            }
        }
    }
}
