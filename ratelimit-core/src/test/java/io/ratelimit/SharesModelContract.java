package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
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
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The part of {@link SharesContract} for random histories, held against the model in {@code proofs/shares.py}. */
public abstract class SharesModelContract extends VectorRuns {

    /** Returns how many random histories a test runs. */
    protected abstract int histories();

    /** A change of the histories that breaks the guarantee. */
    protected enum Mutant {
        NONE,
        RESERVE_ONE_TOKEN_TOO_SMALL,
        THE_POOL_PAYS_AHEAD_TOO
    }

    @Test
    void aStoreGivesTheAnswersOfTheVectors() {
        runShares();
    }

    @Test
    void noGuaranteeIsBrokenAndEachAnswerIsThatOfTheModel() {
        int own = 0;
        int waited = 0;
        for (int seed = 0; seed < histories(); seed++) {
            History history = new History(seed, Mutant.NONE);
            history.runByTheModel();
            assertThat(history.broken).as("seed %d", seed).isZero();
            own += history.own;
            waited += history.waited;
        }
        assertThat(own).isGreaterThan(3 * histories());
        assertThat(waited).isGreaterThan(2 * histories());
    }

    @Test
    void noGuaranteeIsBrokenByReturns() {
        assertThat(brokenByReturns(Mutant.NONE, taken -> {})).isZero();
    }

    @Test
    void aReserveOfOneTokenLessBreaksGuarantees() {
        assertThat(brokenByReturns(Mutant.RESERVE_ONE_TOKEN_TOO_SMALL, taken -> {}))
                .isPositive();
    }

    @Test
    void aPoolThatPaysAheadTooBreaksGuarantees() {
        assertThat(brokenByReturns(Mutant.THE_POOL_PAYS_AHEAD_TOO, taken -> {})).isPositive();
    }

    /** @param returned is called after each return of a call that didn't wait */
    protected int brokenByReturns(Mutant mutant, Consumer<Answer> returned) {
        int broken = 0;
        for (int seed = 0; seed < histories(); seed++) {
            History history = new History(seed, mutant);
            history.runWithReturns(returned);
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

    /** A random history of one pool and its lanes, in half of which calls may wait. */
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
        private int own;
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
            maxWait = random.nextBoolean() ? 0 : 1 + random.nextLong(3 * lanes.get(0).full);
            policy = ThrottlePolicy.of("history-" + mutant.ordinal() + "-" + seed, spec(poolPrice, capacity))
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
            Charge charge =
                    Charge.of(policy, lane < lanes.size() ? "lane" + lane : "common", "", 1 + random.nextLong(most));
            Share share = charge.share();
            return mutant != Mutant.RESERVE_ONE_TOKEN_TOO_SMALL || share == null
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
                        .isEqualTo(Duration.ofMillis(waits ? wait : 0).toNanos());
                pool.missing += waits ? 0 : cost * pool.price;
            }
            if (lane != null && (owns || waits)) {
                own++;
                lane.missing += cost * lane.price;
            }
            if (waits) {
                waited++;
                waiting.add(new Waiting(now + wait, lane, cost, answer));
            }
        }

        void runWithReturns(Consumer<Answer> returned) {
            List<Answer> open = new ArrayList<>();
            int steps = 20 + random.nextInt(100);
            for (int i = 0; i < steps; i++) {
                pass();
                if (!open.isEmpty() && random.nextInt(5) == 0) {
                    Answer back = open.remove(random.nextInt(open.size()));
                    store().giveBack(List.of(back));
                    if (back.waitNanos() == 0) {
                        returned.accept(back);
                    }
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
