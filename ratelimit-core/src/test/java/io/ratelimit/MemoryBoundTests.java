package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A flood of keys in a separate process with little memory: it neither fills the memory nor refills a drained key. */
class MemoryBoundTests {

    private static final int KEYS = 10_000_000;

    @Test
    void tenMillionKeysFitIn256MegabytesAndRefillNoDrainedKey() throws IOException, InterruptedException {
        String output = ChildProcess.output("-Xmx256m", Spray.class);

        assertThat(output).contains("victim allowed 5 of " + KEYS / 1000 + " more");
        assertThat(output.lines().filter(line -> line.startsWith("buckets")).findFirst())
                .hasValueSatisfying(line -> assertThat(Long.parseLong(line.substring("buckets ".length())))
                        .isBetween(100_000L, 104_200L));
    }

    @Test
    void aMillionLimitsThatCodeInventsCostNoMoreMemoryThanTheOnesInUse() throws IOException, InterruptedException {
        String output = ChildProcess.output("-Xmx48m", InventedLimits.class);

        assertThat(output).contains("kept 10000 specs");
        assertThat(output.lines()
                        .filter(line -> line.startsWith("bytes a spec "))
                        .findFirst())
                .hasValueSatisfying(line -> assertThat(Long.parseLong(line.substring("bytes a spec ".length())))
                        .isBetween(1L, 600L));
    }

    /** Calls of 10,000 customers: first under one limit, then each under another, and at last each call under a new one. */
    static final class InventedLimits {

        private static final int CUSTOMERS = 10_000;

        private final LocalBucketStore store = new LocalBucketStore(new ManualTimeSource());
        private final ThrottlePolicy policy =
                ThrottlePolicy.of("plans", BucketSpec.of("1000/1d").withCapacity(1_000_000), "user");

        public static void main(String[] args) throws InterruptedException {
            InventedLimits limits = new InventedLimits();
            for (int i = 0; i < CUSTOMERS; i++) {
                limits.take(i, 0);
            }
            long before = limits.used(1);
            for (int i = 0; i < CUSTOMERS; i++) {
                limits.take(i, i);
            }
            System.out.println("bytes a spec " + (limits.used(CUSTOMERS) - before) / CUSTOMERS);
            for (int i = 0; i < 100 * CUSTOMERS; i++) {
                limits.take(i % CUSTOMERS, i);
            }
            limits.used(CUSTOMERS);
            System.out.println("kept " + limits.store.buckets(limits.policy).specs() + " specs");
        }

        private void take(int customer, int more) {
            BucketSpec spec = policy.spec().withCapacity(1_000_000 + more);
            if (!store.take(List.of(new Charge(policy, spec, "customer-" + customer, 1)))
                    .allowed()) {
                throw new IllegalStateException("a customer's bucket lost tokens");
            }
        }

        /** Returns the bytes in use when no more specs are kept than so many. */
        private long used(int specs) throws InterruptedException {
            do {
                System.gc();
            } while (store.buckets(policy).specs() > specs);
            return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
        }
    }

    /** Floods the store with long keys while another key tries to take more than its five tokens. */
    static final class Spray {

        public static void main(String[] args) {
            LocalBucketStore store = new LocalBucketStore(new ManualTimeSource());
            ThrottlePolicy policy = ThrottlePolicy.of("flood", BucketSpec.of("5/1d"), "user");
            int allowed = 0;
            for (int i = 0; i < KEYS; i++) {
                if (i % 1000 == 0) {
                    allowed += take(store, policy, "victim");
                }
                take(store, policy, "a-key-as-long-as-one-that-is-not-hashed-" + i);
            }
            System.out.println("victim allowed " + allowed + " of " + KEYS / 1000 + " more");
            System.out.println("buckets " + store.size(policy));
        }

        private static int take(BucketStore store, ThrottlePolicy policy, String key) {
            return store.take(List.of(Charge.of(policy, key, 1))).allowed() ? 1 : 0;
        }
    }
}
