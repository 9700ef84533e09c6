package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.lease.LeaseContract;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Leases from the script, and their part of a bucket's value. */
class LeaseTests extends LeaseContract {

    LeaseTests() {
        super(RedisPlace.ofScripts());
    }

    private String text(Charge charge) {
        return KeptValue.text(place.value(charge));
    }

    @Test
    void theValueHasTheLeasedTicksWhileLeasesAreOut() {
        warmUp(20);
        assertThat(text(Charge.of(POLICY, "", 1))).contains(" ^");
    }

    /** Another spec counts only after the last lease. */
    @Test
    void aShorterLeaseOfAnotherInstanceKeepsTheEndOfTheLongerOne() {
        warmUp(20);
        Charge shorter = Charge.of(POLICY.withLease(LEASE.dividedBy(2)), "", 1);
        remote.lease(new LeaseRequest(shorter, 10));
        assertThat(text(shorter)).endsWith("@" + (micros.get() + LEASE.toNanos() / 1_000));
    }

    /** A denied call of two buckets writes a bucket whose clock ran ahead, as it was before the call's lease. */
    @Test
    void aDenialThatCorrectsABucketAheadOfTheClockKeepsItsLeases() {
        warmUp(20);
        long before = missing();
        String text = text(Charge.of(POLICY, "", 1));
        micros.addAndGet(-3_600_000_000L);
        Charge charge = Charge.of(POLICY, "", 1);
        Charge tooMuch = Charge.of(ThrottlePolicy.of("narrow", BucketSpec.of("1/1d")), "", 1);
        remote.take(List.of(tooMuch));
        assertThat(remote.take(List.of(charge, tooMuch), List.of(new LeaseRequest(charge, 50)))
                        .allowed())
                .isFalse();
        assertThat(missing()).isEqualTo(before);
        assertThat(leasedTicks(text(charge))).isEqualTo(leasedTicks(text));
    }

    @Test
    void whenTheClockOfRedisIsSetBackAnotherSpecStillWaitsForTheEndOfTheLease() {
        remote.lease(new LeaseRequest(Charge.of(POLICY, "", 1), 50));
        micros.addAndGet(-3_600_000_000L);
        Charge slower = Charge.of(POLICY.withSpec(BucketSpec.of("40/1s").withCapacity(400)), "", 1);
        remote.take(List.of(slower));
        RedisTickScale ticks = RedisTickScale.of(slower.spec());
        byte[] value = place.value(slower);
        long promised = RedisBucketState.read(value, ticks, micros.get()).promised();
        assertThat(Duration.ofNanos(ticks.microsUntil(promised, micros.get()) * 1_000))
                .isBetween(LEASE, LEASE.plusMillis(1));
    }

    private static String leasedTicks(String value) {
        return value.substring(value.indexOf('^'), value.indexOf('@'));
    }
}
