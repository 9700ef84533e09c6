package io.ratelimit.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BucketSpec;
import io.ratelimit.TokenBucket;
import java.time.Instant;
import java.time.ZoneId;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ReplayClockTests {

    private static long nanos(String moment) {
        return TimeUnit.SECONDS.toNanos(Instant.parse(moment).getEpochSecond());
    }

    @Test
    void aCalendarQuotaCountsByTheTimeOfTheLog() {
        try (ReplayClock clock = new ReplayClock(nanos("2026-01-31T12:00:00Z"))) {
            TokenBucket bucket =
                    TokenBucket.of(BucketSpec.of("1/month").withCalendar(ZoneId.of("Europe/Berlin")), clock);
            assertThat(bucket.tryAcquire(1)).isTrue();
            clock.advanceTo(nanos("2026-01-31T22:59:59Z"));
            assertThat(bucket.tryAcquire(1)).isFalse();
            clock.advanceTo(nanos("2026-01-31T23:00:00Z"));
            assertThat(bucket.tryAcquire(1)).isTrue();
        }
    }

    /** A refund that fails would otherwise be missing in the counts. */
    @Test
    void aCallThatFailsStopsTheReplay() {
        try (ReplayClock clock = new ReplayClock(0)) {
            clock.callAt(10, () -> {
                throw new IllegalArgumentException("no such bucket");
            });
            clock.advanceTo(9);
            assertThatThrownBy(() -> clock.advanceTo(10)).hasRootCauseMessage("no such bucket");
        }
    }

    @Test
    void aCallThatFailsAtTheEndStopsTheReplay() {
        ReplayClock clock = new ReplayClock(0);
        clock.callAt(10, () -> {
            throw new IllegalArgumentException("no such bucket");
        });
        assertThatThrownBy(clock::close).hasRootCauseMessage("no such bucket");
    }

    @Test
    void aRequestThatFailsBeforeOrAfterItWaitedStopsTheReplay() {
        try (ReplayClock clock = new ReplayClock(0)) {
            assertThatThrownBy(() -> clock.run(() -> {
                        throw new IllegalArgumentException("at once");
                    }))
                    .hasRootCauseMessage("at once");
        }
        try (ReplayClock clock = new ReplayClock(0)) {
            clock.run(() -> {
                clock.parkUntil(10);
                throw new IllegalArgumentException("later");
            });
            assertThatThrownBy(() -> clock.advanceTo(10)).hasRootCauseMessage("later");
        }
    }
}
