package io.ratelimit.redis;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.List;

/** What follows from what a bucket was missing. */
final class RedisAnswers {

    private RedisAnswers() {}

    /** The answer of a bucket that the tokens were taken from, when it was missing so much before. */
    static Answer taken(Charge charge, RedisTicks ticks, long before, long now) {
        long missing = before + ticks.of(charge.cost());
        return new Answer(charge, decision(Outcome.ALLOWED, 0, ticks, missing, now), Position.of(ticks, missing, now));
    }

    /** The answer of a bucket that has the tokens still. */
    static Answer has(Charge charge, RedisTicks ticks, long missing, long now) {
        return new Answer(charge, decision(Outcome.ALLOWED, 0, ticks, missing, now));
    }

    /** The answer of a bucket that hasn't the tokens. */
    static Answer lacks(Charge charge, RedisTicks ticks, long missing, boolean ahead, long now) {
        if (!ticks.fits(charge.cost())) {
            return new Answer(charge, decision(Outcome.NEVER_FITS, 0, ticks, missing, now));
        }
        long retry = ticks.nanosUntil(missing + ticks.of(charge.cost()) - ticks.full(), now);
        Outcome outcome = ahead && !charge.maxWait().isZero() ? Outcome.TOO_LONG : Outcome.DENIED;
        return new Answer(charge, decision(outcome, retry, ticks, missing, now));
    }

    private static Decision decision(Outcome outcome, long retryNanos, RedisTicks ticks, long missing, long now) {
        return new Decision(
                outcome,
                ticks.tokens(Math.max(ticks.full() - missing, 0)),
                retryNanos,
                outcome == Outcome.ALLOWED ? ticks.nanosUntil(missing - ticks.full(), now) : 0,
                ticks.nanosUntil(ticks.untilNextToken(missing), now),
                ticks.nanosUntil(missing, now),
                List.of());
    }

    static BucketSnapshot snapshot(Charge charge, RedisTicks ticks, long missing, long now) {
        return new BucketSnapshot(
                ticks.capacity(),
                ticks.rate(charge.spec()),
                ticks.tokens(Math.max(ticks.full() - missing, 0)),
                Duration.ofNanos(ticks.nanosUntil(missing, now)));
    }
}
