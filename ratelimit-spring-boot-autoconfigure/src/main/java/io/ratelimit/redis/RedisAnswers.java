package io.ratelimit.redis;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;

/** Answers and snapshots from the missing ticks of a bucket. */
final class RedisAnswers {

    /**
     * The data about a take with which its tokens can be given back.
     *
     * @param position the moment at which the tokens were due, as {@link QueuePosition} encodes it
     * @param before the ticks missing before the take when the tokens were due, plus the ticks given back until the take
     */
    record Receipt(long position, long before) {}

    private RedisAnswers() {}

    /**
     * Returns the answer of a bucket that the tokens were taken from.
     *
     * @param before the ticks missing before the take
     * @param returned the ticks that had been given back
     */
    static Answer taken(Charge charge, RedisTickScale ticks, long before, long returned, long now) {
        long missing = before + ticks.of(charge.cost());
        Duration wait = Duration.ofNanos(ticks.nanosUntil(missing - ticks.full(), now));
        long beforeWhenDue = Math.min(missing, ticks.full()) - ticks.of(charge.cost());
        return Answer.allowed(charge, snapshot(charge, ticks, missing, now), wait)
                .withReceipt(new Receipt(QueuePosition.of(ticks, missing, now), beforeWhenDue + returned));
    }

    /** Returns the answer of a bucket that has the tokens, but from which none were taken. */
    static Answer available(Charge charge, RedisTickScale ticks, long missing, long now) {
        return Answer.allowed(charge, snapshot(charge, ticks, missing, now), Duration.ZERO);
    }

    /** Returns the answer of a bucket that has too few tokens. */
    static Answer denied(Charge charge, RedisTickScale ticks, long missing, boolean ahead, long now) {
        BucketSnapshot bucket = snapshot(charge, ticks, missing, now);
        if (!ticks.fits(charge.cost())) {
            return Answer.denied(charge, Outcome.NEVER_FITS, bucket, Duration.ZERO);
        }
        long retry = ticks.nanosUntil(missing + ticks.of(charge.cost()) - ticks.full(), now);
        Outcome outcome = ahead && !charge.maxWait().isZero() ? Outcome.TOO_LONG : Outcome.DENIED;
        return Answer.denied(charge, outcome, bucket, Duration.ofNanos(retry));
    }

    static BucketSnapshot snapshot(Charge charge, RedisTickScale ticks, long missing, long now) {
        return new BucketSnapshot(
                ticks.capacity(),
                ticks.rate(charge.spec()),
                ticks.tokens(Math.max(ticks.full() - missing, 0)),
                Duration.ofNanos(ticks.nanosUntil(ticks.untilNextToken(missing), now)),
                Duration.ofNanos(ticks.nanosUntil(missing, now)));
    }
}
