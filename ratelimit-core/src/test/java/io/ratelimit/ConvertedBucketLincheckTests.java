package io.ratelimit;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * A bucket that each call converts has exactly its tokens, in any interleaving with writes to its entry. The entry is a
 * field here, and a lock stands for that of the map. Public, because Lincheck calls it.
 */
@Param(name = "tokens", gen = IntGen.class, conf = "1:3")
@Param(name = "spec", gen = IntGen.class, conf = "0:1")
@Tag("slow")
@Tag("lincheck")
public class ConvertedBucketLincheckTests {

    private static final long HALF_LIFE = 1L << 40;

    /** Shared, since Lincheck creates an object of this class for each of its many runs. */
    private static final TickScale[] SCALES = {
        TickScale.of(BucketSpec.of("1/1ms").withCapacity(4), 0),
        TickScale.of(BucketSpec.of("2/1ms").withCapacity(4), 0)
    };

    private final Object map = new Object();
    private volatile BucketState written = new BucketState(SCALES[0], 0);

    /** Where a call finds the bucket before it looks at the map. */
    private volatile BucketState indexed = written;

    @Operation
    public boolean take(@Param(name = "tokens") int tokens, @Param(name = "spec") int spec) {
        long taken = BucketState.CLOSED;
        while (taken == BucketState.CLOSED) {
            taken = bucket(SCALES[spec]).take(tokens, 0, 0);
        }
        return taken >= 0;
    }

    private BucketState bucket(TickScale scale) {
        BucketState state = indexed;
        if (state.isClosed()) {
            state = ConvertedBucket.latest(written);
        }
        if (state.scale() == scale) {
            return state;
        }
        BucketState converted = ConvertedBucket.convert(state, scale, 0, () -> 0, 0, HALF_LIFE);
        indexed = converted == null ? write(scale) : converted;
        return indexed;
    }

    private BucketState write(TickScale scale) {
        synchronized (map) {
            written = ConvertedBucket.written(written, scale, 0, () -> 0, 0, HALF_LIFE);
            return written;
        }
    }

    @Operation
    public void write(@Param(name = "spec") int spec) {
        write(SCALES[spec]);
    }

    @Operation
    public void reset() {
        synchronized (map) {
            ConvertedBucket.close(written);
            written = new BucketState(SCALES[0], 0);
        }
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
