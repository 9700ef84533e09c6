package io.ratelimit;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.ThreadIdGen;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The slots of a policy are counted in any interleaving as sequential calls count them. Public, because Lincheck calls it. */
@Param(name = "key", gen = IntGen.class, conf = "0:1")
@Param(name = "limit", gen = IntGen.class, conf = "1:2")
@Tag("slow")
@Tag("lincheck")
public class PolicySlotsLincheckTests {

    private final PolicySlots slots = new PolicySlots();
    private final Map<String, Deque<KeySlots>> held = new ConcurrentHashMap<>();

    private Deque<KeySlots> held(int thread, int key) {
        return held.computeIfAbsent(thread + "/" + key, absent -> new ArrayDeque<>());
    }

    @Operation
    public boolean take(
            @Param(gen = ThreadIdGen.class) int thread,
            @Param(name = "key") int key,
            @Param(name = "limit") int limit) {
        KeySlots taken = slots.take(Integer.toString(key), limit);
        return taken != null && held(thread, key).add(taken);
    }

    @Operation
    public boolean release(@Param(gen = ThreadIdGen.class) int thread, @Param(name = "key") int key) {
        KeySlots taken = held(thread, key).poll();
        if (taken != null) {
            slots.release(taken);
        }
        return taken != null;
    }

    /** A call of a key of which no other operation counts the slots. */
    @Operation
    public void call(@Param(name = "key") int key) {
        slots.release(Objects.requireNonNull(slots.take("free" + key, Integer.MAX_VALUE >> 1)));
    }

    /** At most one key without a held slot stays. */
    @Validate
    public void keepsOneUnusedKey() {
        long used = Stream.of("0", "1").filter(key -> slots.held(key) > 0).count();
        if (slots.size() > used + 1) {
            throw new IllegalStateException(slots.size() + " keys, and " + used + " in use");
        }
    }

    /** The counters whose answers are expected. */
    public static class Counters {

        private final int[][] held = new int[8][2];

        public boolean take(int thread, int key, int limit) {
            int count = Stream.of(held).mapToInt(ofThread -> ofThread[key]).sum();
            if (count < limit) {
                held[thread][key]++;
            }
            return count < limit;
        }

        public void call(int key) {}

        public boolean release(int thread, int key) {
            boolean any = held[thread][key] > 0;
            held[thread][key] -= any ? 1 : 0;
            return any;
        }
    }

    @Test
    void areLinearizable() {
        new ModelCheckingOptions()
                .iterations(15)
                .threads(3)
                .actorsPerThread(3)
                .invocationsPerIteration(300)
                .sequentialSpecification(Counters.class)
                .check(getClass());
    }
}
