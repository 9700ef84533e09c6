package io.ratelimit.remote.lease;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Random histories of leases from a store that can only compare and set. */
class StoredLeaseOracleTests extends LeaseOracle {

    @Override
    protected LeasePlace place() {
        return new MapPlace();
    }

    /**
     * In the first history a bucket is full after a refund, and is forgotten with the part of the next batch that it had
     * granted. In the second one two denied calls convert a bucket, which refills under the first one's limit.
     */
    @ParameterizedTest
    @ValueSource(ints = {2_091, 10_549})
    void aBucketThatIsForgottenOrTwiceConvertedIsCountedExactly(int seed) {
        run(seed, false);
    }
}
