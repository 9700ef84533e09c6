package io.ratelimit;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * While time stands still, a striped bucket answers in any interleaving as one bucket to sequential calls.
 * Public, because Lincheck calls it.
 */
@Param(name = "stripe", gen = IntGen.class, conf = "0:1")
@Param(name = "size", gen = IntGen.class, conf = "0:3")
@Tag("slow")
@Tag("lincheck")
public class StripedBucketLincheckTests {

    private static final int[] COSTS = {1, 1, 40, 90};

    private final StripedBucket bucket = new StripedBucket(BucketSpec.of("1/1d").withCapacity(100), 2, () -> 0);

    @Operation
    public boolean tryAcquire(@Param(name = "size") int size, @Param(name = "stripe") int stripe) {
        return bucket.tryAcquire(COSTS[size], stripe);
    }

    @Operation
    public void giveBack(@Param(name = "size") int size) {
        bucket.giveBack(COSTS[size]);
    }

    @Operation
    public long available() {
        return bucket.snapshot().available();
    }

    /** The single bucket whose answers are expected. */
    public static class One {

        private final TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/1d").withCapacity(100), () -> 0);

        public boolean tryAcquire(int size, int stripe) {
            return bucket.tryAcquire(COSTS[size]);
        }

        public void giveBack(int size) {
            bucket.giveBack(COSTS[size]);
        }

        public long available() {
            return bucket.snapshot().available();
        }
    }

    @Test
    void isLinearizable() {
        new ModelCheckingOptions()
                .iterations(10)
                .threads(2)
                .actorsPerThread(3)
                .invocationsPerIteration(300)
                .sequentialSpecification(One.class)
                .check(getClass());
    }
}
