package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.util.List;
import org.junit.jupiter.api.Test;

class FallbackBucketsTests {

    private final FallbackBuckets standIn = new FallbackBuckets(
            BucketStore.local(new ManualTimeSource()), new LocalShare(1), policy -> FailureRule.LOCAL);

    @Test
    void tokensOfAnOverflowBucketAreGivenBackToThatBucket() {
        ThrottlePolicy small =
                ThrottlePolicy.of("small", BucketSpec.of("5/1h"), "user").withMaxKeys(1);
        standIn.take(List.of(Charge.of(small, "known", 1)), false, false);
        List<Charge> charges = List.of(Charge.of(small, "alice", 5));
        Decision taken = standIn.take(charges, false, false);

        standIn.giveBack(taken.answers());

        assertThat(standIn.take(charges, false, false).allowed()).isTrue();
    }
}
