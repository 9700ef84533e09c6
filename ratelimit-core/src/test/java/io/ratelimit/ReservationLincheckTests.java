package io.ratelimit;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * A state with tokens taken ahead answers in any interleaving as if the calls were sequential. Two calls
 * wait from the start, and cancel. Public, because Lincheck calls it.
 */
@Param(name = "tokens", gen = IntGen.class, conf = "1:2")
@Tag("slow")
@Tag("lincheck")
public class ReservationLincheckTests {

    private static final long TOKEN = 1_000_000;

    /** Shared, since Lincheck creates an object of this class for each of its many runs. */
    private static final TickScale SCALE = TickScale.of(BucketSpec.of("1/1ms").withCapacity(2), 0);

    private final BucketState state = new BucketState(SCALE, 0);

    public ReservationLincheckTests() {
        state.take(2, 0, 0);
        state.take(2, 0, 4 * TOKEN);
        state.take(1, 0, 4 * TOKEN);
    }

    @Operation
    public long reserve(@Param(name = "tokens") int tokens) {
        return state.take(tokens, 0, 5 * TOKEN);
    }

    @Operation
    public long take() {
        return state.take(1, 0, 0);
    }

    @Operation
    public long cancelFirst() {
        return state.giveBack(2, 0, new Take.Receipt(state, 2 * TOKEN, 0), 0, () -> 0);
    }

    @Operation
    public long cancelSecond() {
        return state.giveBack(1, 0, new Take.Receipt(state, 3 * TOKEN, TOKEN), 0, () -> 0);
    }

    @Operation
    public long giveBack(@Param(name = "tokens") int tokens) {
        return state.giveBack(tokens, 0, null, 0, () -> 0);
    }

    @Operation
    public long missing() {
        return state.missing(0);
    }

    @Operation
    public void close() {
        state.close();
    }

    @Test
    void isLinearizable() {
        new ModelCheckingOptions()
                .iterations(60)
                .threads(2)
                .actorsBefore(0)
                .actorsPerThread(3)
                .actorsAfter(1)
                .invocationsPerIteration(500)
                .check(getClass());
    }
}
