package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A flood of keys in a separate process with little memory: it neither fills the memory nor refills a drained key. */
@Tag("slow")
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

    /** The bounds are those of {@code docs/promises.md}. */
    @Test
    void aKeyTakesAtMost280BytesAndWithALimitOfItsOwn800() throws IOException, InterruptedException {
        assertThat(bytesOf("one")).isBetween(100L, 280L);
        assertThat(bytesOf("own")).isBetween(281L, 800L);
        assertThat(bytesOf("own-odd")).isBetween(281L, 800L);
    }

    private static long bytesOf(String limits) throws IOException, InterruptedException {
        String output = ChildProcess.output("-Xmx256m -XX:TieredStopAtLevel=1", ManyKeys.class, limits);
        return Long.parseLong(output.lines()
                .filter(line -> line.startsWith("bytes a key "))
                .findFirst()
                .orElseThrow()
                .substring("bytes a key ".length()));
    }

    /** 100,000 keys of 48 characters that are in use, under one limit or each under its own. */
    static final class ManyKeys {

        private static final int KEYS = 100_000;

        public static void main(String[] args) {
            LocalBucketStore store = new LocalBucketStore(new ManualTimeSource());
            ThrottlePolicy policy =
                    ThrottlePolicy.of("plans", BucketSpec.of("1000/1d"), "user").withMaxKeys(KEYS);
            take(store, policy, policy.spec(), KEYS);
            long before = used();
            for (int i = 0; i < KEYS - 1; i++) {
                take(store, policy, spec(args[0], policy, i), i);
            }
            for (int i = 0; i < KEYS - 1; i++) {
                take(store, policy, spec(args[0], policy, i), i);
            }
            System.out.println("bytes a key " + (used() - before) / KEYS);
            if (store.size(policy) != KEYS) {
                throw new IllegalStateException("some keys have no bucket");
            }
        }

        private static BucketSpec spec(String limits, ThrottlePolicy policy, int key) {
            return switch (limits) {
                case "one" -> policy.spec();
                case "own" -> policy.spec().withCapacity(1_000 + key);
                default -> BucketSpec.of("%d/%dms".formatted(1_000_003 + key, 86_400_000 + key));
            };
        }

        private static void take(LocalBucketStore store, ThrottlePolicy policy, BucketSpec spec, int key) {
            String name = "a-key-of-forty-eight-characters-%016d".formatted(key);
            if (!store.take(List.of(new Charge(policy, spec, name, 1))).allowed()) {
                throw new IllegalStateException("denied");
            }
        }

        /** Waits until the maintenance of the cache, which has a delay, is done. */
        private static long used() {
            long least = Long.MAX_VALUE;
            for (int i = 0; i < 5; i++) {
                System.gc();
                least = Math.min(
                        least,
                        Runtime.getRuntime().totalMemory()
                                - Runtime.getRuntime().freeMemory());
            }
            return least;
        }
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
