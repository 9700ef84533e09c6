package io.ratelimit.sample;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.TokenBucket;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A limit in a plain unit test, as {@code docs/testing.md} has it. */
class LimitArithmeticTests {

    private final ManualTimeSource time = new ManualTimeSource();
    private final ThrottlePolicy report = ThrottlePolicy.of("report", BucketSpec.of("60/1m"), "user");
    private final Throttlers throttlers = Throttlers.local(List.of(report), time);

    @Test
    void sixReportsOfTenTokensAreQuickAndThenOneComesInTenSeconds() {
        Throttler alice = throttlers.get("report").forKey("alice");
        for (int i = 0; i < 6; i++) {
            assertThat(alice.decide(10).allowed()).isTrue();
        }
        assertThat(alice.decide(10).retryAfter()).isEqualTo(Duration.ofSeconds(10));

        time.advance(Duration.ofSeconds(10));

        assertThat(alice.decide(10).allowed()).isTrue();
    }

    @Test
    void theQuotaComesBackAtTheBeginningOfTheMonth() {
        time.setWallClock(Instant.parse("2026-02-28T23:59:50Z"));
        TokenBucket quota = TokenBucket.of(BucketSpec.of("2/month").withCalendar(ZoneOffset.UTC), time);
        assertThat(quota.tryAcquire(2)).isTrue();
        assertThat(quota.tryAcquire(1)).isFalse();

        time.advance(Duration.ofSeconds(10));

        assertThat(quota.tryAcquire(2)).isTrue();
    }
}
