package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Test;

/** The contract of a bucket store, for values in a map. */
class CompareAndSetBucketStoreTests extends BucketStoreContract {

    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("1/1h").withCapacity(500), "user");

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final MapBucketStore store = new MapBucketStore(micros::get);

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration step) {
        micros.addAndGet(step.toNanos() / 1_000);
    }

    @Override
    protected void setWallClock(Instant now) {
        micros.set(ChronoUnit.MICROS.between(Instant.EPOCH, now));
    }

    private static Charge charge(long cost) {
        return Charge.of(POLICY, "alice", cost);
    }

    @Test
    void manyThreadsTakeExactlyTheCapacity() {
        LongAdder granted = new LongAdder();
        Threads.run(8, thread -> {
            for (int i = 0; i < 100; i++) {
                if (store.take(List.of(charge(1))).allowed()) {
                    granted.increment();
                }
            }
        });
        assertThat(granted.sum()).isEqualTo(500);
    }

    @Test
    void aCallThatIsAlwaysForestalledFails() {
        CompareAndSetBucketStore busy = new CompareAndSetBucketStore(Duration.ofMillis(1)) {
            @Override
            protected Reading read(List<BucketName> buckets) {
                return new Reading(micros.get(), Arrays.asList(new byte[buckets.size()][]));
            }

            @Override
            protected boolean compareAndSet(List<Change> changes) {
                return false;
            }
        };
        assertThatThrownBy(() -> busy.take(List.of(charge(1))))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining("always first");
    }

    @Test
    void aDenialWritesNothing() {
        store.take(List.of(charge(500)));
        byte[] value = store.value(charge(1));
        assertThat(store.take(List.of(Charge.of(POLICY, "bob", 1), charge(1))).allowed())
                .isFalse();
        assertThat(store.value(charge(1))).isSameAs(value).hasSizeLessThan(50);
        assertThat(store.value(Charge.of(POLICY, "bob", 1))).isNull();
    }

    /** The retry time counts from the change. */
    @Test
    void aDenialUnderAFasterSpecStartsItsRefill() {
        Charge faster = new Charge(POLICY, BucketSpec.of("10/s").withCapacity(500), "alice", 1);
        store.take(List.of(charge(500)));
        assertThat(store.take(List.of(faster)).retryAfter()).isEqualTo(Duration.ofMillis(100));
        advance(Duration.ofMillis(100));
        assertThat(store.take(List.of(faster)).allowed()).isTrue();
    }

    @Test
    void aValueThatIsNoBucketIsAFailureAndGrantsNothing() {
        store.take(List.of(charge(500)));
        byte[] value = store.value(charge(1));
        for (int length = 0; length < value.length; length++) {
            assertIsNoBucket(Arrays.copyOf(value, length));
        }
        assertIsNoBucket(Arrays.copyOf(value, value.length + 1));
        for (int i : new int[] {0, 2, 18}) { // version, moment, tokens of the spec
            byte[] other = value.clone();
            other[i] = i == 18 ? 0x7b : (byte) (other[i] ^ 0x80);
            assertIsNoBucket(other);
        }
    }

    private void assertIsNoBucket(byte[] value) {
        store.setValue(charge(1), value);
        assertThatThrownBy(() -> store.take(List.of(charge(1))))
                .isInstanceOfSatisfying(BackendException.class, failure -> assertThat(failure.isMisconfiguration())
                        .isTrue());
    }
}
