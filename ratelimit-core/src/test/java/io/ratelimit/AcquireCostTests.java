package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Calls that may not wait don't pay for calls that may: the filter calls {@code acquire} for every request. */
class AcquireCostTests {

    private static final int CALLS = 20_000;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    @Test
    void anAllowedCallAllocatesNoMoreThanOneThatNeverWaits() throws InterruptedException {
        assertCostsTheSame(BucketSpec.of("1000000/1d"));
    }

    @Test
    void aDeniedCallAllocatesNoMoreThanOneThatNeverWaits() throws InterruptedException {
        assertCostsTheSame(BucketSpec.of("1/1d"));
    }

    private static void assertCostsTheSame(BucketSpec spec) throws InterruptedException {
        ThrottlePolicy wide = ThrottlePolicy.of("wide", BucketSpec.of("1000000/1d"), "key");
        ThrottlePolicy asked = ThrottlePolicy.of("asked", spec);
        Throttlers throttlers = Throttlers.local(List.of(wide, asked), new ManualTimeSource());
        List<Charge> charges = List.of(Charge.of(wide, "a", 1), Charge.of(asked, "", 1));

        long deciding = allocated(() -> throttlers.decide(charges));
        long acquiring = allocated(() -> throttlers.acquire(charges));

        assertThat(acquiring).isLessThanOrEqualTo(deciding + 8);
    }

    private interface Call {
        void make() throws InterruptedException;
    }

    /** Returns the bytes that one call allocates after warm-up. */
    private static long allocated(Call call) throws InterruptedException {
        for (int i = 0; i < CALLS; i++) {
            call.make();
        }
        long before = THREADS.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < CALLS; i++) {
            call.make();
        }
        return (THREADS.getCurrentThreadAllocatedBytes() - before) / CALLS;
    }
}
