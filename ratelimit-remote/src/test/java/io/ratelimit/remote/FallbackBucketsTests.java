package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FallbackBucketsTests {

    private final FallbackBuckets standIn = new FallbackBuckets(
            BucketStore.local(new ManualTimeSource()), new LocalShare(1), policy -> FailureRule.LOCAL);

    @Test
    void tokensOfAnOverflowBucketAreGivenBackToThatBucket() {
        ThrottlePolicy small =
                ThrottlePolicy.of("small", BucketSpec.of("5/1h"), "user").withMaxKeys(1);
        standIn.take(List.of(Charge.of(small, "known", 1)), BucketStore::take, false);
        List<Charge> charges = List.of(Charge.of(small, "alice", 5));
        Decision taken = standIn.take(charges, BucketStore::take, false);

        standIn.giveBack(taken.answers());

        assertThat(standIn.take(charges, BucketStore::take, false).allowed()).isTrue();
    }

    @ParameterizedTest
    @CsvSource({"LOCAL, false", "LOCAL, true", "ALLOW, true"})
    void aShareOfLessThanATokenDeniesAllAsABackendThatFailed(FailureRule rule, boolean congested) {
        FallbackBuckets buckets =
                new FallbackBuckets(BucketStore.local(new ManualTimeSource()), new LocalShare(0.05), policy -> rule);
        ThrottlePolicy rare = ThrottlePolicy.of("rare", BucketSpec.of("1/1h"));
        ThrottlePolicy often = ThrottlePolicy.of("often", BucketSpec.of("20/1h"));
        List<Charge> one = List.of(Charge.of(often, "", 1));

        Decision denied =
                buckets.take(List.of(Charge.of(often, "", 1), Charge.of(rare, "", 1)), BucketStore::take, congested);
        assertThat(denied.outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(denied.answers())
                .extracting(answer -> answer.policy().name())
                .containsExactly("rare");
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(buckets.snapshot(Charge.of(rare, "", 1))).isNull();
        assertThat(buckets.take(List.of(Charge.of(rare, "", 2)), BucketStore::take, congested)
                        .outcome())
                .isEqualTo(Outcome.NEVER_FITS);
        assertThat(buckets.take(one, BucketStore::take, congested).allowed()).isTrue();
        assertThat(buckets.take(one, BucketStore::take, congested).outcome()).isEqualTo(Outcome.DENIED);
    }

    @Test
    void theLocalShareKeepsItsPartOfGuaranteedShares() {
        FallbackBuckets half = new FallbackBuckets(
                BucketStore.local(new ManualTimeSource()), new LocalShare(0.5), policy -> FailureRule.LOCAL);
        Shares shares = Shares.forKeys(BucketSpec.of("1/1h").withCapacity(4), 3, List.of("user"));
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("10/1h").withCapacity(20))
                .withShares(shares);
        Charge one = Charge.of(policy, "", 1);

        assertThat(allowed(half, one)).isEqualTo(10 - 3 * 2);
        assertThat(allowed(half, one.guaranteedTo("bob"))).isEqualTo(2);
        Decision carols = half.take(List.of(one.guaranteedTo("carol").withCost(2)), BucketStore::take, false);
        assertThat(carols.answers().get(0).isGuaranteed()).isTrue();
        half.giveBack(carols.answers());
        assertThat(allowed(half, one.guaranteedTo("carol"))).isEqualTo(2);
    }

    @ParameterizedTest
    @CsvSource({"0.1, 25", "0.2, 0", "0.5, 25"})
    void guaranteedSharesWithoutALocalPartReserveNothing(double part, int common) {
        FallbackBuckets buckets = new FallbackBuckets(
                BucketStore.local(new ManualTimeSource()), new LocalShare(part), policy -> FailureRule.LOCAL);
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("250/1h"))
                .withShares(Shares.forKeys(BucketSpec.of("5/1h"), 50, List.of("user")));
        assertThat(allowed(buckets, Charge.of(policy, "", 1))).isEqualTo(common);
    }

    private static int allowed(FallbackBuckets buckets, Charge charge) {
        int allowed = 0;
        while (buckets.take(List.of(charge), BucketStore::take, false).allowed()) {
            allowed++;
        }
        return allowed;
    }
}
