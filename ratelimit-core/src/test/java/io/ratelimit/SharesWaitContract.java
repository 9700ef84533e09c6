package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The contract of calls that wait for their guaranteed share, held against the model in {@code proofs/shares.py}. */
public abstract class SharesWaitContract {

    private static final BucketSpec POOL = BucketSpec.of("10/s").withCapacity(20);
    private static final BucketSpec LANE = BucketSpec.of("1/s").withCapacity(3);
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("api", POOL)
            .withShares(Shares.forKeys(LANE, 4, List.of("header:tenant")))
            .withMaxWait(Duration.ofSeconds(4));

    protected abstract BucketStore store();

    protected abstract void advance(Duration time);

    /** Returns how many random histories a test runs. */
    protected abstract int histories();

    private static Charge charge(String tenant, long cost) {
        return Charge.of(POLICY, "", cost).guaranteedTo(tenant);
    }

    private Answer take(String tenant, long cost) {
        return store().take(List.of(charge(tenant, cost))).answers().get(0);
    }

    private Answer reserve(String tenant, long cost) {
        return store().reserve(List.of(charge(tenant, cost))).answers().get(0);
    }

    /** Takes what all share, and the share of bob. */
    private void drain() {
        assertThat(store().take(List.of(Charge.of(POLICY, "", 8))).allowed()).isTrue();
        assertThat(take("bob", 3).allowed()).isTrue();
    }

    /** Returns the tokens of the pool, with those of the reserve. */
    private long tokens() {
        return store().snapshot(Charge.of(POLICY, "", 1).withShare(new Share("", null, 0, 1)))
                .available();
    }

    private long tokens(String tenant) {
        return store().snapshot(charge(tenant, 1)).available();
    }

    @Test
    void aCallWaitsForItsShareAndOthersHaveTheirsMeanwhile() {
        drain();
        Answer waiting = reserve("bob", 2);
        assertThat(waiting.allowed()).isTrue();
        assertThat(waiting.isGuaranteed()).isTrue();
        assertThat(waiting.waitNanos()).isEqualTo(Duration.ofSeconds(2).toNanos());
        assertThat(waiting.remaining()).isZero();
        assertThat(tokens("bob")).isZero();
        for (String other : List.of("carol", "dave", "erin")) {
            assertThat(take(other, 3).allowed()).as(other).isTrue();
        }
        assertThat(tokens()).isZero();
        advance(Duration.ofMillis(1_999));
        assertThat(tokens()).isEqualTo(19);
        advance(Duration.ofMillis(1));
        assertThat(tokens()).isEqualTo(18);
        assertThat(tokens("bob")).isZero();
        advance(Duration.ofSeconds(1));
        assertThat(tokens()).isEqualTo(20);
        assertThat(tokens("bob")).isEqualTo(1);
    }

    @Test
    void callsOfAShareWaitOneAfterTheOther() {
        drain();
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(1).toNanos());
        assertThat(reserve("bob", 2).waitNanos())
                .isEqualTo(Duration.ofSeconds(3).toNanos());
        assertThat(reserve("bob", 2).outcome()).isEqualTo(Outcome.TOO_LONG);
        advance(Duration.ofMillis(2_500));
        assertThat(reserve("bob", 1).isGuaranteed())
                .as("what all share has tokens")
                .isFalse();
        assertThat(tokens("bob")).isZero();
        advance(Duration.ofMillis(1_500));
        assertThat(tokens("bob")).isEqualTo(1);
    }

    @Test
    void aCallThatWouldWaitTooLongTakesNothing() {
        drain();
        assertThat(reserve("bob", 3).waitNanos())
                .isEqualTo(Duration.ofSeconds(3).toNanos());
        Answer denied = reserve("bob", 2);
        assertThat(denied.outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(denied.retryNanos())
                .isEqualTo(Duration.ofMillis(500).toNanos()); // what all share has two tokens then
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(4).toNanos());
    }

    @Test
    void onlyAShareIsWaitedFor() {
        drain();
        Charge common = Charge.of(POLICY, "", 1);
        assertThat(common.maxWait()).isZero();
        assertThat(store().reserve(List.of(common)).outcome()).isEqualTo(Outcome.DENIED);
        for (String other : List.of("carol", "dave", "erin")) {
            assertThat(take(other, 3).allowed()).isTrue();
        }
        assertThat(reserve("frank", 1).allowed()).as("the fifth of four keys").isFalse();
        assertThat(reserve("bob", 4).allowed()).as("more than a share").isFalse();
        assertThat(charge("bob", 1).withMaxWait(Duration.ofHours(1)).maxWait()).isEqualTo(Duration.ofSeconds(4));
    }

    @Test
    void aCallThatStopsWaitingCostsNothing() {
        drain();
        Answer first = reserve("bob", 1);
        Answer second = reserve("bob", 2);
        store().giveBack(List.of(second));
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(2).toNanos());
        store().giveBack(List.of(first)); // the call after it relies on the time of the share
        advance(Duration.ofSeconds(2));
        assertThat(tokens()).isEqualTo(19);
        assertThat(tokens("bob")).isZero();
    }

    @Test
    void tokensComeBackAfterTheWait() {
        drain();
        Answer waited = reserve("bob", 2);
        advance(Duration.ofSeconds(2));
        store().giveBack(List.of(waited));
        assertThat(tokens()).isEqualTo(20);
        assertThat(tokens("bob")).isEqualTo(2);
    }

    @Test
    void nothingComesBackToAShareWhoseCallsWait() {
        drain();
        Answer first = reserve("bob", 1);
        assertThat(reserve("bob", 2).waitNanos())
                .isEqualTo(Duration.ofSeconds(3).toNanos());
        advance(Duration.ofSeconds(1));
        store().giveBack(List.of(first));
        assertThat(tokens()).isEqualTo(19);
        assertThat(reserve("bob", 3).outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(tokens("bob")).isZero();
        advance(Duration.ofSeconds(2));
        assertThat(tokens("bob")).isZero();
    }

    @Test
    void theActualCostOfACallThatWaitedIsSettled() {
        drain();
        Answer waited = reserve("bob", 2);
        advance(Duration.ofSeconds(2));
        store().settle(waited, 4);
        assertThat(tokens()).isEqualTo(16);
        assertThat(tokens("bob")).isZero();
    }

    @Test
    void noCallWaitsWhileAllAreInDebt() {
        drain();
        Answer taken = take("carol", 1);
        store().settle(taken, 40);
        assertThat(reserve("bob", 1).outcome()).isEqualTo(Outcome.TOO_LONG);
    }

    @Test
    void aResetForgetsWhatIsToBePaid() {
        drain();
        assertThat(reserve("bob", 3).allowed()).isTrue();
        store().reset(Charge.of(POLICY, "", 1));
        advance(Duration.ofSeconds(3));
        assertThat(tokens()).isEqualTo(20);
        assertThat(tokens("bob")).isEqualTo(3);
    }

    @Test
    void aCallOverSeveralLimitsWaitsForAllOrTakesNothing() {
        ThrottlePolicy other = ThrottlePolicy.of("other", BucketSpec.of("1/m"));
        drain();
        Charge once = Charge.of(other, "", 1);
        assertThat(store().reserve(List.of(charge("bob", 1), once)).waitNanos())
                .isEqualTo(Duration.ofSeconds(1).toNanos());
        assertThat(store().reserve(List.of(charge("bob", 1), once)).allowed()).isFalse();
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(2).toNanos());
        advance(Duration.ofSeconds(2));
        assertThat(tokens()).isEqualTo(19);
    }

    /** A change of the histories that breaks the guarantee. */
    private enum Mutant {
        NONE,
        THE_POOL_PAYS_AHEAD_TOO
    }

    @Test
    void noGuaranteeIsBrokenAndEachAnswerIsThatOfTheModel() {
        int waited = 0;
        for (int seed = 0; seed < histories(); seed++) {
            History history = new History(seed, Mutant.NONE);
            history.runByTheModel();
            assertThat(history.broken).as("seed %d", seed).isZero();
            waited += history.waited;
        }
        assertThat(waited).isGreaterThan(3 * histories());
    }

    @Test
    void noGuaranteeIsBrokenByReturns() {
        assertThat(brokenByReturns(Mutant.NONE)).isZero();
    }

    @Test
    void aPoolThatPaysAheadTooBreaksGuarantees() {
        assertThat(brokenByReturns(Mutant.THE_POOL_PAYS_AHEAD_TOO)).isPositive();
    }

    private int brokenByReturns(Mutant mutant) {
        int broken = 0;
        for (int seed = 0; seed < histories(); seed++) {
            History history = new History(seed, mutant);
            history.runWithReturns();
            broken += history.broken;
        }
        return broken;
    }

    /** A bucket of the model: one of its ticks comes back each millisecond. A lane that calls wait for misses more than all. */
    private static final class ModelBucket {

        private final long price;
        private final long full;
        private long missing;

        ModelBucket(long price, long capacity) {
            this.price = price;
            this.full = price * capacity;
        }

        long waitFor(long tokens) {
            return missing + tokens * price - full;
        }

        boolean has(long tokens) {
            return waitFor(tokens) <= 0;
        }

        void pass(long ticks) {
            missing = Math.max(missing - ticks, 0);
        }
    }

    /** A call that waits until the moment. */
    private record Waiting(long due, ModelBucket lane, long cost, Answer answer) {}

    /** A random history of one pool and its lanes. */
    private final class History {

        private final String name;
        private final SplittableRandom random;
        private final Mutant mutant;
        private final ModelBucket pool;
        private final List<ModelBucket> lanes = new ArrayList<>();
        private final Queue<Waiting> waiting = new PriorityQueue<>(Comparator.comparingLong(Waiting::due));
        private final ThrottlePolicy policy;
        private final long reserve;
        private final long maxWait;
        private long now;
        private int waited;
        private int broken;

        History(int seed, Mutant mutant) {
            name = "seed " + seed;
            random = new SplittableRandom(seed);
            this.mutant = mutant;
            long poolPrice = new int[] {1, 3, 7, 10}[random.nextInt(4)];
            long[] weights = random.longs(1 + random.nextInt(6), 1, 10).toArray();
            long sum = Arrays.stream(weights).sum();
            Map<String, BucketSpec> guaranteed = new HashMap<>();
            long reserved = 0;
            for (int i = 0; i < weights.length; i++) {
                long price = (poolPrice * sum + weights[i] - 1) / weights[i];
                long capacity = 1 + random.nextInt(12);
                guaranteed.put("lane" + i, spec(price, capacity));
                lanes.add(new ModelBucket(price, capacity));
                reserved += capacity;
            }
            reserve = reserved;
            long capacity = reserve + random.nextInt(41);
            pool = new ModelBucket(poolPrice, capacity);
            maxWait = 1 + random.nextLong(3 * lanes.get(0).full);
            policy = ThrottlePolicy.of("waits-" + mutant.ordinal() + "-" + seed, spec(poolPrice, capacity))
                    .withShares(Shares.named(guaranteed, Map.of()))
                    .withMaxWait(Duration.ofMillis(maxWait));
        }

        private static BucketSpec spec(long price, long capacity) {
            return new BucketSpec(new Rate(1, Duration.ofMillis(price)), capacity, BucketSpec.Refill.GREEDY);
        }

        /** Lets time pass, mostly little. The pool of the model pays when a lane has the tokens. */
        private void pass() {
            double mode = random.nextDouble();
            long ticks = mode < .5
                    ? 0
                    : random.nextLong(
                            mode < .93 ? 3 * pool.price + 1 : mode < .98 ? pool.full + 1 : 10 * pool.full + 1);
            if (ticks == 0) {
                return;
            }
            advance(Duration.ofMillis(ticks));
            long end = now + ticks;
            while (!waiting.isEmpty() && waiting.peek().due <= end) {
                Waiting due = waiting.remove();
                passTo(due.due);
                broken += pool.has(due.cost) ? 0 : 1;
                pool.missing += due.cost * pool.price;
            }
            passTo(end);
        }

        private void passTo(long moment) {
            pool.pass(moment - now);
            lanes.forEach(lane -> lane.pass(moment - now));
            now = moment;
        }

        private Charge charge() {
            int lane = random.nextInt(2 * lanes.size() + 1) / 2;
            long most = lane < lanes.size()
                    ? lanes.get(lane).full / lanes.get(lane).price
                    : new long[] {1, 1, 4, pool.full / pool.price}[random.nextInt(4)];
            return Charge.of(policy, lane < lanes.size() ? "lane" + lane : "common", "", 1 + random.nextLong(most));
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
                if (!waiting.isEmpty() && random.nextInt(8) == 0) {
                    stop(waiting.stream().toList().get(random.nextInt(waiting.size())));
                } else {
                    callByTheModel(charge(), random.nextInt(3) > 0, name + ", step " + i);
                }
            }
        }

        private void stop(Waiting call) {
            store().giveBack(List.of(call.answer));
            waiting.remove(call);
            if (call.due == now + call.lane.waitFor(0)) {
                call.lane.missing -= call.cost * call.lane.price;
            }
        }

        private void callByTheModel(Charge charge, boolean mayWait, String step) {
            ModelBucket lane = lane(charge);
            long cost = charge.cost();
            List<Charge> charges = List.of(charge);
            Decision decision = mayWait ? store().reserve(charges) : store().take(charges);
            Answer answer = decision.answers().get(0);
            boolean borrows = pool.has(cost + reserve);
            boolean owns = !borrows && lane != null && lane.has(cost);
            long wait = borrows || owns || lane == null || !mayWait ? 0 : lane.waitFor(cost);
            boolean waits = wait > 0 && wait <= maxWait;
            broken += owns && !pool.has(cost) ? 1 : 0;
            assertThat(answer.allowed()).as(step).isEqualTo(borrows || owns || waits);
            if (answer.allowed()) {
                assertThat(answer.isGuaranteed()).as(step).isEqualTo(owns || waits);
                assertThat(answer.waitNanos())
                        .as(step)
                        .isEqualTo(Duration.ofMillis(wait).toNanos());
                pool.missing += waits ? 0 : cost * pool.price;
            }
            if (lane != null && (owns || waits)) {
                lane.missing += cost * lane.price;
            }
            if (waits) {
                waited++;
                waiting.add(new Waiting(now + wait, lane, cost, answer));
            }
        }

        void runWithReturns() {
            List<Answer> open = new ArrayList<>();
            int steps = 20 + random.nextInt(100);
            for (int i = 0; i < steps; i++) {
                pass();
                if (!open.isEmpty() && random.nextInt(6) == 0) {
                    store().giveBack(List.of(open.remove(random.nextInt(open.size()))));
                    continue;
                }
                Charge charge = charge();
                Answer answer = store().reserve(List.of(charge)).answers().get(0);
                if (answer.allowed() && answer.isGuaranteed()) {
                    open.add(answer);
                }
                if (answer.waitNanos() > 0 && mutant == Mutant.THE_POOL_PAYS_AHEAD_TOO) {
                    Share all = new Share("", null, 0, lanes.size());
                    store().take(List.of(Charge.of(policy, "", charge.cost()).withShare(all)));
                }
                if (!answer.allowed() && lane(charge) != null) {
                    broken += store().snapshot(charge).available() >= charge.cost() ? 1 : 0;
                }
            }
        }
    }
}
