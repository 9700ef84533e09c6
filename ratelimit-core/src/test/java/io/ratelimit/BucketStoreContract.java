package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** The contract of every bucket store. Each test has its own empty store. */
public abstract class BucketStoreContract extends BucketStoreWaitingContract {

    private static final ThrottlePolicy USER =
            policy("per-user", BucketSpec.of("1/s").withCapacity(5), "user");
    private static final ThrottlePolicy ENDPOINT =
            policy("per-endpoint", BucketSpec.of("1/2s").withCapacity(8), "endpoint");
    private static final ThrottlePolicy GLOBAL = policy("global", BucketSpec.of("10/s"));

    private static ThrottlePolicy policy(String name, BucketSpec spec, String... key) {
        return ThrottlePolicy.of(name, spec, key);
    }

    private static Charge user(String user, long cost) {
        return Charge.of(USER, user, cost);
    }

    private static Charge endpoint(long cost) {
        return Charge.of(ENDPOINT, "GET /x", cost);
    }

    private static Charge global(long cost) {
        return Charge.of(GLOBAL, "", cost);
    }

    private static Charge under(BucketSpec spec, long cost) {
        return new Charge(USER, spec, "alice", cost);
    }

    private Decision take(Charge... charges) {
        return store().take(List.of(charges));
    }

    private long available(Charge charge) {
        return store().snapshot(charge).available();
    }

    private static List<String> violated(Decision decision) {
        return decision.denials().stream().map(answer -> answer.policy().name()).toList();
    }

    @Test
    void anUnusedBucketIsFull() {
        assertThat(store().snapshot(user("alice", 1)))
                .isEqualTo(new BucketSnapshot(5, Rate.of("1/s"), 5, Duration.ZERO, Duration.ZERO));
        assertThat(take(user("alice", 5)).allowed()).isTrue();
    }

    @Test
    void aDecisionOfNoChargesIsAllowed() {
        Decision decision = take();
        assertThat(decision.allowed()).isTrue();
        assertThat(decision.answers()).isEmpty();
        assertThat(decision.denials()).isEmpty();
    }

    @Test
    void eachKeyAndEachPolicyHasItsOwnBucket() {
        assertThat(take(user("alice", 5)).allowed()).isTrue();
        assertThat(take(user("alice", 1)).allowed()).isFalse();
        assertThat(take(user("bob", 5)).allowed()).isTrue();
        assertThat(take(Charge.of(ENDPOINT, "alice", 5)).allowed()).isTrue();
    }

    @Test
    void anyKeyOfAClientIsAccepted() {
        for (String key :
                List.of("", " ", "\0", "a:b", "{a}", "ä\ud800\n", "x".repeat(5_000), "x".repeat(5_000) + "y")) {
            assertThat(take(user(key, 5)).allowed()).as(key).isTrue();
            assertThat(take(user(key, 1)).allowed()).as(key).isFalse();
        }
    }

    @Test
    void tokensComeBackWithTime() {
        assertThat(take(user("alice", 5)).allowed()).isTrue();
        advance(Duration.ofMillis(999));
        assertThat(take(user("alice", 1)).retryAfter()).isEqualTo(Duration.ofMillis(1));
        advance(Duration.ofMillis(1));
        assertThat(take(user("alice", 1)).allowed()).isTrue();
        advance(Duration.ofMillis(2_500));
        assertThat(available(user("alice", 1))).isEqualTo(2);
        assertThat(take(user("alice", 3)).retryAfter()).isEqualTo(Duration.ofMillis(500));
        advance(Duration.ofDays(400));
        assertThat(available(user("alice", 1))).isEqualTo(5);
    }

    @Test
    void anAllowedCallIsTakenFromAll() {
        Decision decision = take(user("alice", 1), endpoint(2), global(3));
        assertThat(decision.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(decision.remaining()).isEqualTo(4);
        assertThat(decision.retryAfter()).isZero();
        assertThat(decision.nextTokenNanos()).isEqualTo(Duration.ofSeconds(2).toNanos());
        assertThat(decision.resetAfter()).isEqualTo(Duration.ofSeconds(4));
        assertThat(decision.answers())
                .extracting(answer -> answer.policy().name(), answer -> answer.remaining())
                .containsExactly(tuple("per-user", 4L), tuple("per-endpoint", 6L), tuple("global", 7L));
        assertThat(available(user("alice", 1))).isEqualTo(4);
        assertThat(available(endpoint(1))).isEqualTo(6);
        assertThat(available(global(1))).isEqualTo(7);
    }

    private static org.assertj.core.groups.Tuple tuple(Object... values) {
        return org.assertj.core.groups.Tuple.tuple(values);
    }

    @Test
    void aDeniedCallCostsTheOthersNothing() {
        assertThat(take(endpoint(8)).allowed()).isTrue();
        for (int i = 0; i < 20; i++) {
            assertThat(take(user("alice", 1), endpoint(1), global(1)).outcome()).isEqualTo(Outcome.DENIED);
        }
        assertThat(store().snapshot(user("alice", 1)).resetAfter()).isZero();
        assertThat(store().snapshot(global(1)).resetAfter()).isZero();
        assertThat(store().snapshot(endpoint(1)).resetAfter()).isEqualTo(Duration.ofSeconds(16));
    }

    @Test
    void everyBucketThatWasShortIsNamedAndTheLongestWaitCounts() {
        assertThat(take(user("alice", 5)).allowed()).isTrue();
        assertThat(take(global(10)).allowed()).isTrue();
        Decision decision = take(global(1), endpoint(1), user("alice", 2));
        assertThat(violated(decision)).containsExactly("global", "per-user");
        assertThat(decision.retryAfter()).isEqualTo(Duration.ofSeconds(2));
        assertThat(decision.remaining()).isZero();
        assertThat(decision.answers()).extracting(Answer::allowed).containsExactly(false, true, false);
        assertThat(decision.answers().get(0).retryNanos()).isEqualTo(100_000_000);
        assertThat(decision.answers().get(1).remaining()).isEqualTo(8);
    }

    @Test
    void theAnswerIsTheSameForAnyPositionOfTheShortBucket() {
        assertThat(take(endpoint(8)).allowed()).isTrue();
        for (List<Charge> charges : List.of(
                List.of(endpoint(1), user("alice", 1), global(1)),
                List.of(user("alice", 1), endpoint(1), global(1)),
                List.of(user("alice", 1), global(1), endpoint(1)))) {
            Decision decision = store().take(charges);
            assertThat(violated(decision)).containsExactly("per-endpoint");
            assertThat(decision.retryAfter()).isEqualTo(Duration.ofSeconds(2));
            assertThat(decision.answers()).extracting(Answer::charge).isEqualTo(charges);
        }
    }

    @Test
    void aCostThatNeverFitsHasItsOwnOutcomeAndNoRetryTime() {
        assertThat(take(endpoint(8)).allowed()).isTrue();
        Decision decision = take(user("alice", 6), endpoint(1), global(1));
        assertThat(decision.outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(decision.retryAfter()).isZero();
        assertThat(decision.answers())
                .extracting(answer -> answer.outcome())
                .containsExactly(Outcome.NEVER_FITS, Outcome.DENIED, Outcome.ALLOWED);
        assertThat(available(user("alice", 1))).isEqualTo(5);
        assertThat(available(global(1))).isEqualTo(10);
    }

    @Test
    void oneBucketChargedTwiceInACallPaysBoth() {
        assertThat(take(user("alice", 3), user("alice", 3)).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(available(user("alice", 1))).isEqualTo(5);
        assertThat(take(user("alice", 3), user("alice", 2)).allowed()).isTrue();
        assertThat(available(user("alice", 1))).isZero();
    }

    @Test
    void tokensGivenBackAreAvailableAgainAndNeverMore() {
        assertThat(take(user("alice", 5), global(3)).allowed()).isTrue();
        store().giveBack(Specs.taken(user("alice", 2), global(3)));
        assertThat(available(user("alice", 1))).isEqualTo(2);
        assertThat(store().snapshot(global(1)).resetAfter()).isZero();
        store().giveBack(Specs.taken(user("alice", 5), user("bob", 3)));
        assertThat(available(user("alice", 1))).isEqualTo(5);
        assertThat(available(user("bob", 1))).isEqualTo(5);
    }

    @Test
    void lookingChangesNothing() {
        assertThat(take(user("alice", 4)).allowed()).isTrue();
        for (int i = 0; i < 10; i++) {
            assertThat(store().snapshot(user("alice", 3)))
                    .isEqualTo(new BucketSnapshot(5, Rate.of("1/s"), 1, Duration.ofSeconds(1), Duration.ofSeconds(4)));
        }
        advance(Duration.ofMillis(1_500));
        assertThat(store().snapshot(user("alice", 3)))
                .isEqualTo(new BucketSnapshot(5, Rate.of("1/s"), 2, Duration.ofMillis(500), Duration.ofMillis(2_500)));
    }

    @Test
    void aForgottenBucketIsFullAndNoOtherIsForgotten() {
        assertThat(take(user("alice", 5), user("bob", 5)).allowed()).isTrue();
        store().reset(user("alice", 1));
        store().reset(user("nobody", 1));
        assertThat(available(user("alice", 1))).isEqualTo(5);
        assertThat(take(user("alice", 5)).allowed()).isTrue();
        assertThat(take(user("bob", 1)).allowed()).isFalse();
    }

    @Test
    void whatWasTakenBeforeAResetDoesNotComeBackAfterIt() {
        Decision before = take(user("alice", 5));
        Decision settled = take(user("bob", 5));
        store().reset(user("alice", 1));
        store().reset(user("bob", 1));
        advance(Duration.ofMillis(1));
        assertThat(take(user("alice", 5), user("bob", 5)).allowed()).isTrue();
        store().giveBack(before.answers());
        store().settle(settled.answers().get(0), 1);
        assertThat(available(user("alice", 1))).isZero();
        assertThat(available(user("bob", 1))).isZero();
    }

    @Test
    void norDoesItIfTheLimitWasChangedBeforeTheResetOrAfterIt() {
        BucketSpec changed = USER.spec().withRate(Rate.of("1/2s"));
        Decision before = take(under(USER.spec(), 5));
        assertThat(take(under(changed, 1)).allowed()).isFalse();
        for (BucketSpec next : List.of(changed, USER.spec())) {
            store().reset(under(changed, 1));
            advance(Duration.ofMillis(1));
            assertThat(take(under(changed, 5)).allowed()).isTrue();
            assertThat(take(under(next, 1)).allowed()).isFalse();
            store().giveBack(before.answers());
            store().settle(before.answers().get(0), 1);
            assertThat(available(under(next, 1))).as(next.toString()).isZero();
        }
    }

    /** The first retry time shows where the store's period begins. */
    @Test
    void intervalRefillBringsABatchAtEachTick() {
        Charge one = under(new BucketSpec(Rate.of("5/1m"), 8, Refill.INTERVAL), 1);
        Charge all = under(one.spec(), 8);
        assertThat(take(all).allowed()).isTrue();
        Duration untilTick = take(one).retryAfter();
        assertThat(untilTick).isPositive().isLessThanOrEqualTo(Duration.ofMinutes(1));
        assertThat(take(all).retryAfter()).isEqualTo(untilTick.plusMinutes(1));
        advance(untilTick.minusMillis(1));
        assertThat(take(one).retryAfter()).isEqualTo(Duration.ofMillis(1));
        advance(Duration.ofMillis(1));
        assertThat(available(one)).isEqualTo(5);
        assertThat(take(one).allowed()).isTrue();
        advance(Duration.ofSeconds(59));
        assertThat(available(one)).isEqualTo(4);
        advance(Duration.ofSeconds(1));
        assertThat(available(one)).isEqualTo(8);
    }

    @Test
    void tokensAreKeptWhenTheCapacityGrows() {
        assertThat(take(under(USER.spec(), 2)).allowed()).isTrue();
        BucketSpec larger = USER.spec().withCapacity(20);
        assertThat(store().snapshot(under(larger, 1)))
                .isEqualTo(new BucketSnapshot(20, Rate.of("1/s"), 3, Duration.ofSeconds(1), Duration.ofSeconds(17)));
        assertThat(take(under(larger, 4)).retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(take(under(larger, 3)).allowed()).isTrue();
        assertThat(take(under(larger, 1)).allowed()).isFalse();
    }

    @Test
    void tokensAreCutWhenTheCapacityShrinks() {
        assertThat(take(under(USER.spec(), 1)).allowed()).isTrue();
        BucketSpec smaller = USER.spec().withCapacity(2);
        assertThat(store().snapshot(under(smaller, 1)))
                .isEqualTo(new BucketSnapshot(2, Rate.of("1/s"), 2, Duration.ZERO, Duration.ZERO));
        assertThat(take(under(smaller, 3)).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(take(under(smaller, 1)).remaining()).isEqualTo(1);
        assertThat(available(under(USER.spec(), 1))).isEqualTo(1);
    }

    /** S3.5: the time before the change counts at the old rate. */
    @Test
    void theTimeUntilAChangeOfTheRateCountsAtTheOldOne() {
        assertThat(take(under(USER.spec(), 5)).allowed()).isTrue();
        advance(Duration.ofSeconds(2));
        BucketSpec slower = BucketSpec.of("1/10s").withCapacity(5);
        assertThat(take(under(slower, 3)).retryAfter()).isEqualTo(Duration.ofSeconds(10));
        advance(Duration.ofSeconds(10));
        assertThat(take(under(slower, 3)).allowed()).isTrue();
    }

    @Test
    void aDrainedBucketWhoseRateRisesServesAtTheNewRate() {
        assertThat(take(under(BucketSpec.of("5/1d"), 5)).allowed()).isTrue();
        assertThat(take(under(BucketSpec.of("5/1d"), 1)).retryAfter()).isEqualTo(Duration.ofMinutes(288));
        BucketSpec raised = BucketSpec.of("5/1m");
        assertThat(take(under(raised, 1)).retryAfter()).isEqualTo(Duration.ofSeconds(12));
        advance(Duration.ofSeconds(12));
        assertThat(take(under(raised, 1)).allowed()).isTrue();
        advance(Duration.ofMinutes(1));
        assertThat(take(under(raised, 5)).allowed()).isTrue();
    }

    @Test
    void aBucketCanChangeBetweenGreedyAndInterval() {
        assertThat(take(under(USER.spec(), 2)).allowed()).isTrue();
        BucketSpec interval = USER.spec().withRefill(Refill.INTERVAL);
        assertThat(take(under(interval, 1)).remaining()).isEqualTo(2);
        assertThat(take(under(USER.spec(), 1)).remaining()).isEqualTo(1);
    }

    /** Compares with one token bucket for each key, taken from in turn and given back to. */
    @RepeatedTest(20)
    void agreesWithSeparateBuckets(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        ManualTimeSource time = new ManualTimeSource();
        Map<String, TokenBucket> buckets = new TreeMap<>();
        for (int i = 0; i < 300; i++) {
            String step = "seed %d, step %d".formatted(run.getCurrentRepetition(), i);
            Duration pause = Duration.ofMillis(random.nextInt(3) == 0 ? Specs.upTo(30_000, random) : 0);
            time.advance(pause);
            advance(pause);
            List<Charge> charges = randomCharges(random);
            List<TokenBucket> asked = charges.stream()
                    .map(charge -> buckets.computeIfAbsent(
                            charge.policy().name() + charge.key(), key -> TokenBucket.of(charge.spec(), time)))
                    .toList();
            if (random.nextInt(10) == 0) {
                store().giveBack(Specs.taken(charges.toArray(Charge[]::new)));
                giveBack(charges, asked, charges.size());
                continue;
            }
            int taken = takeWhileAllowed(charges, asked);
            if (taken < charges.size()) {
                giveBack(charges, asked, taken);
            }
            assertThat(store().take(charges).allowed()).as(step).isEqualTo(taken == charges.size());
            for (int j = 0; j < charges.size(); j++) {
                assertThat(store().snapshot(charges.get(j)))
                        .as(step)
                        .isEqualTo(asked.get(j).snapshot());
            }
        }
    }

    private static int takeWhileAllowed(List<Charge> charges, List<TokenBucket> buckets) {
        int taken = 0;
        while (taken < charges.size()
                && buckets.get(taken).tryAcquire(charges.get(taken).cost())) {
            taken++;
        }
        return taken;
    }

    private static void giveBack(List<Charge> charges, List<TokenBucket> buckets, int count) {
        for (int i = 0; i < count; i++) {
            buckets.get(i).giveBack(charges.get(i).cost());
        }
    }

    private static List<Charge> randomCharges(SplittableRandom random) {
        List<Charge> charges = new ArrayList<>();
        if (random.nextInt(3) > 0) {
            charges.add(user("user" + random.nextInt(3), 1 + random.nextInt(6)));
        }
        if (random.nextInt(3) > 0) {
            charges.add(endpoint(1 + random.nextInt(4)));
        }
        charges.add(random.nextInt(charges.size() + 1), global(1 + random.nextInt(5)));
        return charges;
    }

    /** Time stands still, so in each bucket the granted and the remaining tokens add up to the initial ones. */
    @Test
    void threadsNeitherOvergrantNorLoseATokenAnywhere() {
        ThrottlePolicy policy = policy("own", BucketSpec.of("1/h").withCapacity(50), "user");
        ThrottlePolicy shared = policy("shared", BucketSpec.of("1/h").withCapacity(300));
        int threads = 8;
        LongAdder[] granted = new LongAdder[threads];
        Threads.run(threads, thread -> {
            granted[thread] = new LongAdder();
            Charge ofThread = Charge.of(policy, "user" + thread, 1);
            Charge ofAll = Charge.of(shared, "", 1);
            List<Charge> charges = thread % 2 == 0 ? List.of(ofThread, ofAll) : List.of(ofAll, ofThread);
            for (int i = 0; i < 200; i++) {
                if (store().take(charges).allowed()) {
                    granted[thread].increment();
                }
            }
        });
        long all = 0;
        for (int thread = 0; thread < threads; thread++) {
            assertThat(granted[thread].sum() + available(Charge.of(policy, "user" + thread, 1)))
                    .as("user %d", thread)
                    .isEqualTo(50);
            all += granted[thread].sum();
        }
        assertThat(all + available(Charge.of(shared, "", 1))).isEqualTo(300);
        assertThat(all).isGreaterThan(250);
    }
}
