package io.ratelimit;

import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Test;

/** Whatever the interleaving, a level answers as if the calls had come one after another. Public, for Lincheck calls it. */
@Param(name = "tokens", gen = IntGen.class, conf = "1:3")
@Param(name = "millis", gen = IntGen.class, conf = "0:3")
public class LevelLincheckTests {

    private final Level level = new Level(Ticks.of(BucketSpec.of("1/1ms").withCapacity(2), 0), 0);

    @Operation
    public long take(@Param(name = "tokens") int tokens, @Param(name = "millis") int millis) {
        return level.take(tokens, millis * 1_000_000L);
    }

    @Operation
    public boolean giveBack(@Param(name = "tokens") int tokens, @Param(name = "millis") int millis) {
        return level.giveBack(tokens, () -> millis * 1_000_000L);
    }

    @Operation
    public long missing(@Param(name = "millis") int millis) {
        return level.missing(millis * 1_000_000L);
    }

    @Operation
    public void close() {
        level.close();
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
