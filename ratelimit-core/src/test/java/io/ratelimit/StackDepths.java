package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/** Makes a call with less and less of its thread's stack left, until none is left to begin it. */
public final class StackDepths {

    private static final int STACK_BYTES = 200 << 10;
    private static final int WARM_UP = 50;

    /** The depth that leaves a call all the stack it needs, counted from the last one at which it begins. */
    private static final int ROOM = 700;

    private StackDepths() {}

    /**
     * Makes a call at each of the last depths. What it returns is released with all the stack, and then the check is made.
     *
     * @param call gets the depth, or a number below zero before all others
     */
    public static void each(IntFunction<Runnable> call, IntConsumer check) throws InterruptedException {
        for (int i = 1; i <= WARM_UP; i++) { // a class whose initialization overflows the stack is unusable for ever
            call.apply(-i).run();
            check.accept(-i);
        }
        AtomicInteger overflows = new AtomicInteger();
        List<Throwable> failures = new ArrayList<>();
        Runnable descents = () -> {
            try {
                for (int wide = 0; wide < 2; wide++) {
                    int depth = 0;
                    while (attempt(wide, depth, call, overflows)) {
                        check.accept(depth);
                        depth += ROOM;
                    }
                    for (depth = Math.max(0, depth - 2 * ROOM); attempt(wide, depth, call, overflows); depth++) {
                        check.accept(depth);
                    }
                }
            } catch (Throwable failure) {
                failures.add(failure);
            }
        };
        Thread thread = new Thread(null, descents, "deep", STACK_BYTES);
        thread.start();
        thread.join();
        assertThat(failures).isEmpty();
        assertThat(overflows.get()).isPositive();
    }

    /** Returns whether there was stack enough to begin the call. */
    private static boolean attempt(int wide, int depth, IntFunction<Runnable> call, AtomicInteger overflows) {
        boolean[] begun = {false};
        @Nullable Runnable[] result = {null};
        Runnable last = () -> {
            begun[0] = true;
            result[0] = call.apply(depth);
        };
        try {
            descend(wide, depth, 0, last);
        } catch (StackOverflowError overflow) {
            overflows.incrementAndGet();
        }
        if (result[0] != null) {
            result[0].run();
        }
        return begun[0];
    }

    /** Begins with frames of another size, so that the call begins at more places of the stack. */
    private static long descend(int wide, int depth, long wider, Runnable call) {
        if (wide > 0) {
            return descend(wide - 1, depth, wider + 1, call) + wider;
        }
        descend(depth, call);
        return 0;
    }

    private static void descend(int depth, Runnable call) {
        if (depth > 0) {
            descend(depth - 1, call);
        } else {
            call.run();
        }
    }
}
