package io.ratelimit.redis;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.cluster.SlotHash;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision;
import io.ratelimit.Shares;
import io.ratelimit.SharesContract;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Guaranteed shares in Redis, on a clock of the test. */
@Tag("slow")
class RedisSharesTests extends SharesContract {

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final RedisKeys keys = TestRedis.keys();
    private final BucketStore store = TestRedis.shared().scriptStore(keys, Duration.ofSeconds(10), false, micros::get);

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration step) {
        micros.addAndGet(step.toNanos() / 1_000);
    }

    @Override
    protected int histories() {
        return 100;
    }

    @Test
    void aShareThatGetsAllBackBreaksGuarantees() {
        assertThat(brokenByReturns(Mutant.NONE, taken -> {
                    Share share = requireNonNull(taken.charge().share());
                    long tokens = taken.charge().cost();
                    double units = 8e-3 * tokens * taken.spec().rate().period().toNanos();
                    byte[] lanes = keys.lanes(taken.charge());
                    TestRedis.shared().connection().sync().zincrby(lanes, -units, keys.hashed(share.key()));
                }))
                .isPositive();
    }

    @Test
    void aCallIsOneScriptCallWhateverPays() {
        ThrottlePolicy policy = tenants(4).withMaxWait(Duration.ofMinutes(1));
        Charge bob = Charge.of(policy, "", 2).guaranteedTo("bob");
        try (TestRedis redis = TestRedis.start()) {
            BucketStore store = redis.scriptStore(keys, Duration.ofSeconds(10), false, micros::get);
            assertThat(store.take(List.of(Charge.of(policy, "", 1))).allowed()).isTrue(); // it loads the script
            long before = calls(redis);
            List<Decision> decisions = List.of(
                    store.take(List.of(bob.withCost(7))),
                    store.take(List.of(bob)),
                    store.take(List.of(bob)),
                    store.take(List.of(bob.withCost(7))),
                    store.reserve(List.of(bob)));
            assertThat(decisions).extracting(Decision::allowed).containsExactly(true, true, false, false, true);
            assertThat(decisions.get(4).waitNanos()).isPositive();
            assertThat(calls(redis)).isEqualTo(before + decisions.size());
            store.giveBack(decisions.get(1).taken());
            assertThat(calls(redis)).isEqualTo(before + decisions.size() + 1);
        }
    }

    /** Whoever calls: the wait bounds the calls of each share, and so the value that each call of the policy reads. */
    @Test
    void aCallThatWaitsIsTwentyBytesAndItsShareBoundsHowManyThereAre() {
        ThrottlePolicy policy = tenants(4).withMaxWait(Duration.ofSeconds(100));
        drain(policy, 12);
        long waiting = 0;
        for (String tenant : List.of("bob", "carol", "dave", "erin")) {
            Charge charge = Charge.of(policy, "", 1).guaranteedTo(tenant);
            assertThat(store.take(List.of(charge.withCost(3))).allowed()).isTrue();
            for (int i = 0; i < 150; i++) {
                waiting += store.reserve(List.of(charge)).waitNanos() > 0 ? 1 : 0;
            }
        }
        assertThat(waiting).isEqualTo(4 * 100);
        assertThat(length(Charge.of(policy, "", 1))).isBetween(19 * waiting, 20 * waiting + 100);
        advance(Duration.ofSeconds(100));
        assertThat(take(policy, null, 1).allowed()).isTrue();
        assertThat(length(Charge.of(policy, "", 1))).isLessThan(100);
    }

    private long length(Charge charge) {
        return TestRedis.shared().connection().sync().strlen(keys.key(charge));
    }

    private static long calls(TestRedis redis) {
        return redis.connection()
                .sync()
                .info("commandstats")
                .lines()
                .filter(line -> line.startsWith("cmdstat_eval"))
                .mapToLong(line -> Long.parseLong(line.replaceAll(".*[:,]calls=(\\d+).*", "$1")))
                .sum();
    }

    @Test
    void aClusterKeepsAllKeysOfSharesInOneSlot() {
        Shares shares = Shares.forKeys(BucketSpec.of("1/s"), 2, List.of("user"));
        Charge charge =
                Charge.of(ThrottlePolicy.of("api", BucketSpec.of("10/s")).withShares(shares), "", 1);
        assertThat(SlotHash.getSlot(keys.key(charge))).isEqualTo(SlotHash.getSlot(keys.lanes(charge)));
        assertThat(keys.key(charge)).isNotEqualTo(keys.lanes(charge));
    }

    @Test
    void aClockThatWasAheadEmptiesNoShareForLonger() {
        ThrottlePolicy policy = tenants(4);
        micros.addAndGet(Duration.ofHours(1).toMillis() * 1_000);
        drain(policy, 12);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        micros.addAndGet(-Duration.ofHours(1).toMillis() * 1_000);
        assertThat(take(policy, "bob", 1).allowed()).isFalse();
        advance(Duration.ofSeconds(1));
        drainAgain(policy);
        assertThat(take(policy, "bob", 2).allowed()).isFalse();
        assertThat(take(policy, "bob", 1).allowed()).isTrue();
    }

    @Test
    void aShareOfManyTokensAMicrosecondHasItsWholeRate() {
        BucketSpec lane = BucketSpec.of("7000000/s").withCapacity(7_000_000);
        ThrottlePolicy policy = ThrottlePolicy.of(
                        "bytes", BucketSpec.of("14000000/s").withCapacity(28_000_000))
                .withShares(Shares.forKeys(lane, 2, List.of("user")));
        assertThat(take(policy, null, 14_000_000).allowed()).isTrue();
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 5; j++) {
                assertThat(take(policy, "alice", 1_400_000).allowed()).isTrue();
                assertThat(take(policy, "bob", 1_400_000).allowed()).isTrue();
            }
            assertThat(take(policy, "alice", 1).allowed()).isFalse();
            advance(Duration.ofSeconds(1));
        }
    }
}
