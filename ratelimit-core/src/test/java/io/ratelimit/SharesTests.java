package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Guaranteed shares in memory. */
class SharesTests extends SharesContract {

    private final ManualTimeSource time = new ManualTimeSource();
    private final BucketStore store = BucketStore.local(time);

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration duration) {
        time.advance(duration);
    }

    @Override
    protected int histories() {
        return GrantOracle.steps(3_000);
    }

    @Test
    void aShareThatGetsAllBackBreaksGuarantees() {
        assertThat(brokenByReturns(Mutant.NONE, taken -> {
                    BucketState lane = ((Lanes.LaneReceipt) taken.receipt()).lane();
                    lane.giveBackTicks(lane.scale().price(taken.charge().cost()));
                }))
                .isPositive();
    }

    private static ThrottlePolicy policy(String rate, long capacity) {
        return ThrottlePolicy.of("api", BucketSpec.of(rate).withCapacity(capacity));
    }

    private static Shares tenants(String rate, long capacity, int keys) {
        return Shares.forKeys(BucketSpec.of(rate).withCapacity(capacity), keys, List.of("user"));
    }

    @Test
    void sumsThatDontFitAreRejectedWithNumbersThatDo() {
        ThrottlePolicy policy = policy("1000/s", 2000);
        policy.withShares(tenants("20/s", 40, 50));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy.withShares(tenants("25/s", 40, 50)))
                .withMessage(
                        "the guaranteed rates of 'api' must be at most its rate, 1000/1s, but are 1250/1s for 50 keys:"
                                + " raise the rate to 1250/1s, or set 'for' to 40");
        policy.withShares(tenants("20/s", 40, 50));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy.withShares(tenants("20/s", 41, 50)))
                .withMessage(
                        "the guaranteed capacities of 'api' must be at most its capacity, 2000, but are 2050 for 50"
                                + " keys: raise the capacity to 2050, or set 'for' to 48");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy.withShares(tenants("1/m", 1, 3000)))
                .withMessageEndingWith("raise the capacity to 3000, or set 'for' to 2000");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy("1/m", 20).withShares(tenants("1/m", 1, 3)))
                .withMessageEndingWith("raise the rate to 3/1m, or set 'for' to 1");
        BucketSpec lane = BucketSpec.of("700/s").withCapacity(10);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy.withShares(
                        Shares.named(Map.of("a", lane, "b", lane.withRate(Rate.of("20000/m"))), Map.of())))
                .withMessageEndingWith("but are 1034/1s together: raise the rate to 1034/1s, or guarantee less");
    }

    @ParameterizedTest
    @CsvSource({"10/m, 10, 2/m, 2, 50", "10/m, 100, 2/m, 30, 50", "7/3s, 20, 2/s, 3, 9", "9/s, 4, 1/s, 2, 3"})
    void theAdvisedNumbersFit(String rate, long capacity, String laneRate, long laneCapacity, int keys) {
        Throwable mistake =
                catchThrowable(() -> policy(rate, capacity).withShares(tenants(laneRate, laneCapacity, keys)));
        Matcher advice = Pattern.compile(
                        "raise the (?:rate to (\\S+))?(?: and the )?(?:capacity to (\\d+))?, or set 'for' to (\\d+)")
                .matcher(mistake.getMessage());
        assertThat(advice.find()).as(mistake.getMessage()).isTrue();
        String raised = advice.group(1) == null ? rate : advice.group(1);
        long larger = advice.group(2) == null ? capacity : Long.parseLong(advice.group(2));
        policy(raised, larger).withShares(tenants(laneRate, laneCapacity, keys));
        policy(rate, capacity).withShares(tenants(laneRate, laneCapacity, Integer.parseInt(advice.group(3))));
    }

    @Test
    void aChangeBelowTheSharesIsRejected() {
        Throttlers throttlers = new Throttlers(
                List.of(policy("1000/s", 2000).withShares(tenants("20/s", 40, 50))),
                store,
                time,
                ThrottleListener.NONE);
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        throttlers.get("api").reconfigure(BucketSpec.of("900/s").withCapacity(2000)))
                .withMessageContaining("raise the rate to 1000/1s, or set 'for' to 45");
        assertThat(throttlers.get("api").policy().spec().rate()).isEqualTo(Rate.of("1000/s"));
        throttlers.get("api").reconfigure(BucketSpec.of("1100/s").withCapacity(2000));
    }

    @Test
    void aPolicyWithAnotherKindOfLimitHasNoShares() {
        Shares shares = tenants("1/s", 1, 1);
        ThrottlePolicy policy = policy("10/s", 10);
        assertThatIllegalArgumentException().isThrownBy(() -> ThrottlePolicy.of("api", BucketSpec.of("10/s"), "user")
                .withShares(shares));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy.withLease(Duration.ofSeconds(1)).withShares(shares));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy.withTiers(Map.of("a", policy.spec())).withShares(shares));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy.withSpec(policy.spec().withRefill(BucketSpec.Refill.INTERVAL))
                        .withShares(shares));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> policy.withSpec(BucketSpec.inFlight(3)).withShares(shares));
        assertThatIllegalArgumentException().isThrownBy(() -> tenants("1/s", 1, 0));
        assertThatIllegalArgumentException().isThrownBy(() -> Shares.named(Map.of(), Map.of("batch", 100)));
    }

    @Test
    void aStoreThatKeepsNoSharesIsRejected() {
        ThrottlePolicy policy = policy("10/s", 10).withShares(tenants("1/s", 1, 1));
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> new Throttlers(List.of(policy), new MapBucketStore(() -> 0), time, ThrottleListener.NONE))
                .withMessageContaining("'api' has guaranteed shares");
    }

    @Test
    void aThrottlerAnswersForTheShareOfAKey() {
        GlobalThrottler api = Throttlers.local(List.of(policy("10/s", 10).withShares(tenants("1/s", 2, 5))), time)
                .global("api");
        assertThat(api.tryAcquire(1)).isFalse();
        assertThat(api.guaranteedTo("Alice").tryAcquire(1)).isTrue();
        assertThat(api.guaranteedTo("alice").snapshot().available()).isEqualTo(1);
        assertThat(api.guaranteedTo("bob").snapshot().available()).isEqualTo(2);
        assertThat(api.snapshot().available()).isZero();
        assertThatIllegalArgumentException().isThrownBy(() -> api.guaranteedTo("a", "b"));
        assertThatIllegalArgumentException().isThrownBy(() -> api.guaranteedTo(" "));
    }

    @Test
    void aSnapshotOfAShareIsWhatItCanStillGet() {
        GlobalThrottler api = Throttlers.local(List.of(policy("10/s", 20).withShares(tenants("1/s", 3, 4))), time)
                .global("api");
        assertThat(api.guaranteedTo("bob").snapshot().available()).isEqualTo(8);
        assertThat(api.guaranteedTo("bob").snapshot().capacity()).isEqualTo(20);
        assertThat(api.tryAcquire(6)).isTrue();
        assertThat(api.guaranteedTo("bob").snapshot().available()).isEqualTo(3);
        assertThat(api.guaranteedTo("bob").snapshot().capacity()).isEqualTo(3);
    }

    /** A lane that paid at an older moment than a borrower would have tokens that the pool lacks. */
    @Test
    void aShareOfACallThatOthersOvertookHasNoMoreThanThePool() {
        HeldUpTimeSource clock = new HeldUpTimeSource(Duration.ZERO);
        BucketStore overtaken = BucketStore.local(clock);
        ThrottlePolicy policy = policy("4/s", 20).withShares(tenants("1/s", 3, 4));
        Charge common = Charge.of(policy, "", 8);
        assertThat(overtaken.take(List.of(common)).allowed()).isTrue();
        clock.holdUpNextReader(
                Duration.ofSeconds(2),
                () -> assertThat(overtaken.take(List.of(common)).allowed()).isTrue());
        Charge share = Charge.of(policy, "", 3);
        for (String tenant : List.of("bob", "carol", "dave", "erin")) {
            assertThat(overtaken.take(List.of(share.guaranteedTo(tenant))).allowed())
                    .as(tenant)
                    .isTrue();
        }
        assertThat(overtaken.snapshot(share.guaranteedTo("bob")).available()).isZero();
    }

    @Test
    void manyThreadsNeverBreakAGuaranteeNorTheLimit() throws InterruptedException {
        BucketSpec spec = BucketSpec.of("1/h").withCapacity(40_000);
        ThrottlePolicy policy = ThrottlePolicy.of("api", spec).withShares(tenants("1/40h", 1_000, 4));
        LongAdder granted = new LongAdder();
        AtomicLong[] own = {new AtomicLong(), new AtomicLong(), new AtomicLong(), new AtomicLong()};
        Threads.run(8, thread -> {
            for (int i = 0; i < 20_000; i++) {
                Charge charge = Charge.of(policy, "", 1);
                int lane = i % 5;
                Answer answer = store.take(List.of(lane == 4 ? charge : charge.guaranteedTo("user" + lane)))
                        .answers()
                        .get(0);
                if (answer.allowed()) {
                    granted.increment();
                    if (answer.isGuaranteed()) {
                        own[lane].incrementAndGet();
                    }
                }
            }
        });
        assertThat(own).extracting(AtomicLong::get).containsOnly(1_000L);
        assertThat(granted.sum()).isEqualTo(40_000);
    }
}
