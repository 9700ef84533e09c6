package io.ratelimit.redis;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.LeasingBucketStore.Grant;
import io.ratelimit.redis.RedisBucketStore.Timing;
import io.ratelimit.redis.RedisScript.ScriptReply;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Answers and snapshots from the missing ticks of a bucket. The time of a bucket with calendar refill is that of its
 * {@link CalendarClock}, of others that of the server.
 */
final class RedisAnswers {

    /**
     * The data about a take with which its tokens can be given back. The tokens are due at the moment of the take, or at
     * the later moment that they were taken ahead for.
     *
     * @param step the step of the clock at which the tokens are due
     * @param rest the ticks after the step
     * @param before the ticks missing before the take when the tokens were due, plus the ticks given back until the take
     * @param begun the name of the bucket's count of ticks given back, in {@code bucket.lua}
     */
    record ScriptReceipt(long step, long rest, long before, long begun) {

        private static ScriptReceipt of(RedisTickScale ticks, long missing, long before, long micros, long begun) {
            long due = Math.max(missing - ticks.full(), 0);
            return new ScriptReceipt(ticks.step(micros) + due / ticks.perStep(), due % ticks.perStep(), before, begun);
        }
    }

    private RedisAnswers() {}

    /**
     * @param returned the ticks that had been given back
     * @param now the moment of the take in microseconds, by the server's clock or by the calendar
     * @param at the time of the bucket, which is later if the clock was set back
     */
    static Answer taken(
            Charge charge,
            RedisTickScale ticks,
            long before,
            long returned,
            long now,
            long at,
            long begun,
            @Nullable CalendarClock calendar) {
        long missing = before + ticks.price(charge.cost());
        long from = ticks.step(now) == ticks.step(at) ? now : at; // a batch that has come doesn't come again
        Duration wait = Duration.ofNanos(ticks.nanosUntil(missing - ticks.full(), from, calendar));
        long beforeWhenDue = Math.min(missing, ticks.full()) - ticks.price(charge.cost());
        return Answer.allowed(charge, seen(charge, ticks, missing, from, calendar), wait)
                .withReceipt(ScriptReceipt.of(ticks, missing, beforeWhenDue + returned, at, begun));
    }

    /**
     * Returns the receipt for a part of the tokens of a take at once.
     *
     * @param cost the tokens of this part, which counts as the last part of the take
     * @param missing the ticks missing after the whole take
     * @param returned the ticks that had been given back
     * @param at the time of the bucket in microseconds
     */
    static ScriptReceipt receipt(RedisTickScale ticks, long cost, long missing, long returned, long at, long begun) {
        return ScriptReceipt.of(ticks, missing, missing - ticks.price(cost) + returned, at, begun);
    }

    /** Returns the answer of a bucket that has the tokens, but from which none were taken. */
    static Answer available(
            Charge charge, RedisTickScale ticks, long missing, long now, @Nullable CalendarClock calendar) {
        return Answer.allowed(charge, seen(charge, ticks, missing, now, calendar), Duration.ZERO);
    }

    static Answer denied(
            Charge charge,
            RedisTickScale ticks,
            long missing,
            Timing timing,
            long now,
            @Nullable CalendarClock calendar) {
        BucketSnapshot bucket = seen(charge, ticks, missing, now, calendar);
        long leave = leave(charge);
        if (charge.cost() > ticks.capacity() - leave) {
            return Answer.denied(charge, Outcome.NEVER_FITS, bucket, Duration.ZERO);
        }
        long retry = ticks.nanosUntil(missing + ticks.price(charge.cost() + leave) - ticks.full(), now, calendar);
        return Answer.denied(charge, denial(charge, timing), bucket, Duration.ofNanos(retry));
    }

    static Outcome denial(Charge charge, Timing timing) {
        return timing == Timing.AHEAD && !charge.maxWait().isZero() ? Outcome.TOO_LONG : Outcome.DENIED;
    }

    /** Returns the answer of a pool that has fewer tokens than the lane of the charge. */
    static Answer inDebt(Charge charge, RedisTickScale ticks, long missing, Timing timing, long now) {
        long retry = ticks.nanosUntil(missing + ticks.price(charge.cost()) - ticks.full(), now, null);
        BucketSnapshot pool = snapshot(charge, ticks, missing, now, null);
        return Answer.denied(charge, denial(charge, timing), pool, Duration.ofNanos(retry));
    }

    private static long leave(Charge charge) {
        Share share = charge.share();
        return share == null ? 0 : share.leave();
    }

    /** Returns the bucket as the charge may use it: without the tokens that it has to leave. */
    static BucketSnapshot seen(
            Charge charge, RedisTickScale ticks, long missing, long now, @Nullable CalendarClock calendar) {
        BucketSnapshot bucket = snapshot(charge, ticks, missing, now, calendar);
        long leave = leave(charge);
        if (leave == 0) {
            return bucket;
        }
        long left = bucket.available() - leave;
        Duration next = left >= 0
                ? bucket.nextTokenAfter()
                : Duration.ofNanos(ticks.nanosUntil(missing - ticks.full() + ticks.price(leave + 1), now, calendar));
        return new BucketSnapshot(bucket.capacity(), bucket.rate(), Math.max(left, 0), next, bucket.resetAfter());
    }

    static BucketSnapshot snapshot(
            Charge charge, RedisTickScale ticks, long missing, long now, @Nullable CalendarClock calendar) {
        return new BucketSnapshot(
                ticks.capacity(),
                ticks.rate(charge.spec()),
                ticks.tokens(Math.max(ticks.full() - missing, 0)),
                Duration.ofNanos(ticks.nanosUntil(ticks.untilNextToken(missing), now, calendar)),
                Duration.ofNanos(ticks.nanosUntil(missing, now, calendar)));
    }

    /** Returns the bucket after a call for a lease. A bucket with leases has no calendar. */
    static BucketSnapshot leasedFrom(Charge charge, RedisTickScale ticks, ScriptReply reply, int i) {
        return snapshot(charge, ticks, reply.lacking(i), reply.now(i), null);
    }

    static Grant grant(Charge charge, RedisTickScale ticks, ScriptReply reply, int i) {
        long missing = reply.missing(i);
        long returned = reply.returned(i);
        long at = reply.at(i);
        long begun = reply.begun(i);
        return new Grant(
                ticks.tokens(reply.leased(i)),
                leasedFrom(charge, ticks, reply, i),
                reply.now(i),
                cost -> receipt(ticks, cost, missing, returned, at, begun));
    }
}
