package io.ratelimit;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A copied state has exactly the tokens of the original, in any interleaving. Public, because Lincheck calls it. */
@Param(name = "tokens", gen = IntGen.class, conf = "1:3")
@Param(name = "millis", gen = IntGen.class, conf = "0:3")
@Tag("slow")
@Tag("lincheck")
public class BucketStateCopyLincheckTests {

    /** Shared, since Lincheck creates an object of this class for each of its many runs. */
    private static final TickScale SCALE = TickScale.of(BucketSpec.of("1/1ms").withCapacity(3), 0);

    private volatile BucketState state = new BucketState(SCALE, 0);

    @Operation
    public long take(@Param(name = "tokens") int tokens, @Param(name = "millis") int millis) {
        long taken = BucketState.CLOSED;
        while (taken == BucketState.CLOSED) {
            taken = state.take(tokens, millis * 1_000_000L, 0);
        }
        return taken;
    }

    @Operation
    public void giveBack(@Param(name = "tokens") int tokens, @Param(name = "millis") int millis) {
        long back = BucketState.CLOSED;
        while (back == BucketState.CLOSED) {
            back = state.giveBack(tokens, 0, null, 0, () -> millis * 1_000_000L);
        }
    }

    @Operation
    public long owe(@Param(name = "tokens") int tokens, @Param(name = "millis") int millis) {
        long missing = BucketState.CLOSED;
        while (missing == BucketState.CLOSED) {
            missing = state.owe(tokens, false, () -> millis * 1_000_000L);
        }
        return missing;
    }

    @Operation(nonParallelGroup = "copy")
    public void copy() {
        BucketState before = state;
        state = before.replace(before::copy);
    }

    @Test
    void isLinearizable() {
        new ModelCheckingOptions()
                .iterations(20)
                .threads(2)
                .actorsPerThread(3)
                .invocationsPerIteration(500)
                .check(getClass());
    }
}
