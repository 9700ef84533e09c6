package io.ratelimit.redis;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.ratelimit.BackendException;
import io.ratelimit.redis.RedisAnswers.ScriptReceipt;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The state of one bucket in Redis at one moment. Its arithmetic is that of {@code bucket.lua}, where it is explained. Both
 * have the same results to the last tick.
 *
 * @param missing the ticks that the bucket lacks for being full; ticks beyond those of a full bucket are its debt
 * @param promised the ticks until the last moment promised to a call that took ahead, if the debt doesn't show it
 * @param moved whether that promise was made under another spec, so that queue positions can't be compared with it
 * @param keptUntil the second of the server's clock until which the value is kept even if the bucket is full, because it
 *     was written under a spec that fills it no earlier; 0 for none
 * @param returned the ticks that were given back since {@code begun}, at most {@link #MAX_RETURNED}
 * @param advance the ticks of the next batch that calls may take before it, since a conversion kept them
 * @param owes whether the debt shows more than was promised, because a call cost more than its estimate
 * @param leased the ticks that leases alone took; no give reduces {@code missing} below them
 * @param leaseEnd the moment at which the last lease ends; meaningless if {@code leased} is 0
 * @param at the moment, in microseconds of the server's clock
 * @param begun the name of the count of ticks given back: only tokens that were taken during this count come back
 */
record RedisBucketState(
        RedisTickScale ticks,
        long missing,
        long promised,
        boolean moved,
        long keptUntil,
        long returned,
        long advance,
        boolean owes,
        long leased,
        long leaseEnd,
        long at,
        long begun) {

    private static final long SLACK_MILLIS = 1_000;
    private static final long SECOND_MICROS = 1_000_000;
    private static final double ROUNDING = 1e-15;
    private static final long AHEAD_MICROS = 60 * SECOND_MICROS;
    private static final String OWES = "!";
    private static final long MAX_WAIT_MICROS = Duration.ofDays(365).toNanos() / 1_000;

    /** At this count all that was missing before a take counts as given back. */
    private static final long MAX_RETURNED = RedisTickScale.MAX_TICKS / 2;

    RedisBucketState {
        owes = owes && missing > ticks.full() + advance;
    }

    /** Returns the state of a bucket without a value in Redis. */
    static RedisBucketState full(RedisTickScale ticks, long at) {
        return new RedisBucketState(ticks, 0, 0, false, 0, 0, 0, false, 0, 0, at, at);
    }

    /** Returns the state of a value under the spec in the value; a full bucket without a value. */
    static RedisBucketState read(byte @Nullable [] value, RedisTickScale defaultTicks, long now) {
        return value == null
                ? full(defaultTicks, now)
                : parse(value).corrected(now).at(now);
    }

    private static RedisBucketState parse(byte[] value) {
        ByteBuffer numbers = ByteBuffer.wrap(value);
        try {
            long at = whole(numbers.getDouble());
            long missing = whole(numbers.getDouble());
            double begun = numbers.getDouble();
            long returned = begun < 0 ? whole(numbers.getDouble()) : 0;
            String[] text = US_ASCII.decode(numbers).toString().split(" ", -1);
            RedisTickScale ticks = named(text[0]);
            int next = 1;
            long promised = isNumber(text, next) ? Long.parseLong(text[next++]) : 0;
            long keptUntil = is('+', text, next) ? Long.parseLong(text[next++]) : 0;
            long advance = is('~', text, next) ? Long.parseLong(text[next++].substring(1)) : 0;
            boolean owes = next < text.length && text[next].equals(OWES);
            next += owes ? 1 : 0;
            String[] lease = is('^', text, next) ? text[next++].substring(1).split("@", -1) : new String[] {"0", "0"};
            if (lease.length != 2) {
                throw new NumberFormatException("'" + text[next - 1] + "' is no part of a bucket");
            }
            whole(Math.abs((double) promised));
            whole((double) keptUntil * SECOND_MICROS);
            whole(advance);
            long leased = whole(Long.parseLong(lease[0]));
            long leaseEnd = whole(Long.parseLong(lease[1]));
            if (next < text.length) {
                throw new NumberFormatException("'" + text[next] + "' is no part of a bucket");
            }
            return new RedisBucketState(
                    ticks,
                    missing,
                    Math.abs(promised),
                    promised < 0,
                    keptUntil,
                    returned,
                    advance,
                    owes,
                    leased,
                    leaseEnd,
                    at,
                    begun(begun));
        } catch (NumberFormatException | BufferUnderflowException invalid) {
            throw new BackendException("the value of a key of ratelimit is no bucket", invalid, true);
        }
    }

    private static boolean isNumber(String[] text, int i) {
        return i < text.length && !is('+', text, i) && !is('~', text, i) && !is('^', text, i) && !text[i].equals(OWES);
    }

    private static boolean is(char mark, String[] text, int i) {
        return i < text.length && text[i].indexOf(mark) == 0;
    }

    /** Checks the third number of a value, which is negative if a count follows. */
    private static long begun(double number) {
        if (number != Math.rint(number)) {
            throw new NumberFormatException(number + " is no name of a count");
        }
        return whole(number < 0 ? -number - 1 : number);
    }

    /** Checks a number of a value. */
    private static long whole(double number) {
        if (!(number >= 0 && number <= RedisTickScale.MAX_TICKS)) {
            throw new NumberFormatException(number + " is no number of a bucket");
        }
        return (long) number;
    }

    /** Returns the value to write; null for a full bucket, which has no value. */
    byte @Nullable [] value() {
        if (ticksToExpiry() == 0 && keptUntil == 0) {
            return null;
        }
        byte[] text = text().getBytes(US_ASCII);
        int numbers = returned > 0 ? 4 : 3;
        ByteBuffer value = ByteBuffer.allocate(numbers * Double.BYTES + text.length);
        value.putDouble(at).putDouble(missing).putDouble(returned > 0 ? -begun - 1 : begun);
        if (returned > 0) {
            value.putDouble(returned);
        }
        return value.put(text).array();
    }

    private String text() {
        String name = ticks.name();
        long shown = owes ? 0 : debt();
        String text = moved ? name + " -" + promised : promised > shown ? name + " " + promised : name;
        text = keptUntil > 0 ? text + " +" + keptUntil : text;
        text = advance > 0 ? text + " ~" + advance : text;
        text = owes ? text + " " + OWES : text;
        return leased > 0 ? text + " ^" + leased + "@" + leaseEnd : text;
    }

    /** Returns how long a value that is written at the given moment must be kept. */
    long millisToKeep(long now) {
        long micros = Math.max(expiresAt(), keptUntil * SECOND_MICROS) - now;
        return (micros + 999) / 1_000 + SLACK_MILLIS;
    }

    /** Returns when the value expires, in microseconds. */
    private long expiresAt() {
        return at + ticks.microsUntil(ticksToExpiry(), at);
    }

    /** Returns the ticks until the value expires. */
    private long ticksToExpiry() {
        return Math.max(missing, promised);
    }

    /** Returns the microseconds until the tokens can be taken; {@link Long#MAX_VALUE} if they never fit. */
    long microsUntil(long cost) {
        return ticks.fits(cost)
                ? ticks.microsUntil(missingFor(cost) + ticks.price(cost) - ticks.full(), at)
                : Long.MAX_VALUE;
    }

    /**
     * Returns the steps by which a value's moment is moved back, because the clock was ahead when the value was written and
     * has been corrected since; 0 if it wasn't.
     */
    static long correctedSteps(byte @Nullable [] value, long now) {
        RedisBucketState bucket = value == null ? null : parse(value);
        return bucket != null && bucket.ranAhead(now) ? (bucket.at - now - 1) / bucket.ticks.stepMicros() : 0;
    }

    private boolean ranAhead(long now) {
        return at - now > AHEAD_MICROS + ticks.stepMicros();
    }

    /** Returns this state; if the clock was ahead, with a moment from which time counts again. */
    private RedisBucketState corrected(long now) {
        if (!ranAhead(now)) {
            return this;
        }
        long soon = now + 1 + (at - now - 1) % ticks.stepMicros();
        long soonEnd = soon + Math.max(leaseEnd - at, 0);
        return new RedisBucketState(
                ticks, missing, promised, moved, keptUntil, returned, advance, owes, leased, soonEnd, soon, begun);
    }

    /** Returns the state at a later moment. */
    private RedisBucketState at(long now) {
        long passed = now > at ? ticks.ofSteps(ticks.step(now) - ticks.step(at)) : 0;
        long left = Math.max(promised - passed, 0);
        long stillMissing = Math.max(missing - passed, 0);
        long later = Math.max(now, at);
        boolean paid = returned > 0 && stillMissing == 0 && left == 0;
        return new RedisBucketState(
                ticks,
                stillMissing,
                left,
                moved && left > 0,
                keptUntil * SECOND_MICROS <= now ? 0 : keptUntil,
                paid ? 0 : returned,
                passed > 0 ? 0 : advance,
                owes,
                Math.max(leased - passed, 0),
                leaseEnd,
                later,
                paid ? nextBegun(later) : begun);
    }

    private long nextBegun(long now) {
        return Math.max(now, begun + 1);
    }

    /**
     * Returns the state under another spec. The present spec counts until the last promised moment or the end of the
     * last lease, whichever is later. But a slower spec counts from the end of the debt, if the bucket has fewer tokens
     * then, and none is there before that end.
     */
    RedisBucketState under(RedisTickScale other) {
        if (other.equals(ticks)) {
            return this;
        }
        long last = Math.max(lastPromise(), leaseLeft());
        long served = at + ticks.microsUntil(last, at);
        long endOfDebt = at + ticks.microsUntil(Math.min(debt(), last), at);
        long missingNow = Math.max(
                Math.max(missingUnder(other, served), missingUnder(other, endOfDebt)), inDebtUntil(endOfDebt, other));
        long promise = last == 0 ? 0 : other.ofSteps(other.step(served + other.stepMicros() - 1) - other.step(at));
        long kept = keptMissing(other, ticks.full() - Math.max(missing - advance, 0));
        return new RedisBucketState(
                other,
                missingNow,
                promise,
                last > 0,
                Math.max(keptUntil, secondOf(expiresAt())),
                0,
                last > 0 ? 0 : Math.max(missingNow - kept, 0),
                owes,
                0, // no give reaches below what is missing now
                0,
                at,
                nextBegun(at));
    }

    /** Returns the ticks missing now under another spec if no token is there before a later moment. */
    private long inDebtUntil(long end, RedisTickScale other) {
        return end > at
                ? Math.min(other.full() + other.ofSteps(other.step(end - 1) - other.step(at)), RedisTickScale.MAX_TICKS)
                : 0;
    }

    /** Returns the second of a moment, rounded up; 0 if the moment isn't in the future. */
    private long secondOf(long moment) {
        return moment > at ? (Math.min(moment, RedisTickScale.MAX_TICKS) + SECOND_MICROS - 1) / SECOND_MICROS : 0;
    }

    /** Returns the ticks missing now under another spec that counts from the given moment. */
    private long missingUnder(RedisTickScale other, long from) {
        long passed = ticks.ofSteps(ticks.step(from) - ticks.step(at));
        long kept = worthMissing(other, ticks.full() - Math.max(missing - passed, 0), from);
        return Math.min(kept + other.ofSteps(other.step(from) - other.step(at)), RedisTickScale.MAX_TICKS);
    }

    /**
     * Returns the ticks missing under another spec for the tokens there and the part of the next batch that is earned,
     * less the part that counts as earned under the other spec.
     */
    private long worthMissing(RedisTickScale other, long have, long from) {
        long before = earned(ticks, from);
        if (ticks.perToken() == other.perToken() && ticks.stepMicros() == other.stepMicros()) {
            long left = have + before - earned(other, from);
            return Math.min(Math.max(other.full() - left, 0), RedisTickScale.MAX_TICKS);
        }
        double after = earnedTokens(other, from);
        if (before == 0 && after == 0) {
            return keptMissing(other, have);
        }
        double tokens = (double) (have + before) / ticks.perToken();
        double worth = tokens - after - (Math.abs(tokens) + after) * ROUNDING;
        double left = Math.min(Math.floor(worth * other.perToken()), other.full());
        return other.full() - (long) Math.max(left, -RedisTickScale.MAX_TICKS);
    }

    private long keptMissing(RedisTickScale other, long have) {
        long tokens = ticks.tokens(have);
        if (tokens >= other.capacity()) {
            return 0;
        }
        long part = partOfToken(have - tokens * ticks.perToken(), ticks.perToken(), other.perToken());
        return -tokens > RedisTickScale.MAX_TICKS / other.perToken()
                ? RedisTickScale.MAX_TICKS
                : Math.min(other.full() - (tokens * other.perToken() + part), RedisTickScale.MAX_TICKS);
    }

    /** Computes with doubles, exactly as the script does. */
    private static long partOfToken(double rest, double of, double to) {
        return rest * to > RedisTickScale.MAX_TICKS
                ? (long) Math.max(Math.floor(rest / of * to) - 1, 0)
                : (long) Math.floor(rest * to / of);
    }

    private long debt() {
        return missing > ticks.full() + advance ? missing - ticks.full() : 0;
    }

    /** Returns the ticks until the last promised moment. */
    private long lastPromise() {
        return owes ? promised : Math.max(debt(), promised);
    }

    /** Returns the ticks until the end of the last lease. */
    private long leaseLeft() {
        long step = ticks.step(leaseEnd + ticks.stepMicros() - 1);
        return leased > 0 ? ticks.ofSteps(Math.max(step - ticks.step(at), 0)) : 0;
    }

    /** Returns whether a call that may wait for the given time finds the tokens. */
    boolean has(long cost, long waitMicros) {
        return ticks.fits(cost) && missingFor(cost) + ticks.price(cost) <= maxMissing(ticks, waitMicros, at);
    }

    /** Returns the ticks missing for a take: fewer than counted if the tokens are there only because they were kept. */
    long missingFor(long cost) {
        long after = ticks.fits(cost) ? missing + ticks.price(cost) : missing;
        return after <= ticks.full() + advance ? Math.max(missing - advance, 0) : missing;
    }

    /** Returns the state after a take. */
    RedisBucketState take(long cost) {
        return with(Math.min(missing + ticks.price(cost), RedisTickScale.MAX_TICKS), promised, returned, false);
    }

    private RedisBucketState with(long missing, long promised, long returned, boolean owes) {
        return new RedisBucketState(
                ticks, missing, promised, moved, keptUntil, returned, advance, owes, leased, leaseEnd, at, begun);
    }

    /**
     * Returns the state after tokens were given back. Tokens that time has brought back already don't come back, nor do
     * those that later promises or leases rely on, nor those taken before the bucket was converted or was full.
     *
     * @param kept the tokens of the same take that are not given back
     * @param receipt the receipt of the take; null if it isn't recorded
     */
    RedisBucketState giveBack(long cost, long kept, @Nullable ScriptReceipt receipt) {
        long price = ticks.price(cost);
        long keptPrice = ticks.price(kept);
        long last = lastPromise();
        long back = last > 0 ? 0 : price;
        if (receipt != null) {
            boolean counted = last == 0 && returned < MAX_RETURNED;
            long room = counted ? Math.max(receipt.before() - returned, 0) : 0;
            back = receipt.begun() == begun ? stillMissing(price, keptPrice, last - ticksUntil(receipt), room) : 0;
        }
        long pulled = Math.min(back, missing - Math.min(missing, leased));
        return pulled == 0
                ? this
                : with(
                        missing - pulled,
                        last > 0 && back < price + keptPrice ? last : promised,
                        Math.min(returned + pulled, MAX_RETURNED),
                        owes);
    }

    /** Returns the ticks until the tokens of a receipt are due; negative if they were due before. */
    private long ticksUntil(ScriptReceipt receipt) {
        long ahead = receipt.step() - ticks.step(at);
        return Long.signum(ahead) * ticks.ofSteps(Math.abs(ahead)) + receipt.rest();
    }

    private static long stillMissing(long price, long kept, long behind, long before) {
        return behind < 0 ? 0 : Math.min(Math.max(price + kept + before - behind, 0), price);
    }

    /** Returns the state after tokens were taken even if the bucket had too few. */
    RedisBucketState owe(long tokens) {
        long after = Math.max(missingAfterDebt(ticks, missing, tokens), missing);
        boolean inDebt = after > ticks.full() + advance;
        return with(after, inDebt ? lastPromise() : promised, returned, inDebt);
    }

    /**
     * Reads the text of {@link RedisTickScale#name}.
     *
     * @throws NumberFormatException if the text is no spec
     */
    static RedisTickScale named(String name) {
        String[] numbers = name.split("/", -1);
        if (numbers.length != 4) {
            throw new NumberFormatException("'" + name + "' is no spec");
        }
        RedisTickScale ticks =
                new RedisTickScale(number(numbers[0]), number(numbers[1]), number(numbers[2]), number(numbers[3]));
        if ((double) ticks.capacity() * ticks.perToken() > RedisTickScale.MAX_TICKS) {
            throw new NumberFormatException("'" + name + "' is no spec");
        }
        return ticks;
    }

    private static long number(String digits) {
        long number = Long.parseLong(digits);
        if (number < 1 || number > RedisTickScale.MAX_TICKS) {
            throw new NumberFormatException("'" + digits + "' is no number of a spec");
        }
        return number;
    }

    private static boolean hasBatches(RedisTickScale ticks) {
        return ticks.stepMicros() > 1 && ticks.perStep() % ticks.perToken() == 0;
    }

    /**
     * Returns the ticks of the next batch that the time since the last one has earned, in whole parts of the period; zero if
     * tokens come one by one.
     */
    private static long earned(RedisTickScale ticks, long micros) {
        double part = Math.floor((double) (micros % ticks.stepMicros()) * ticks.perToken() / ticks.stepMicros());
        return hasBatches(ticks) ? ticks.perStep() / ticks.perToken() * (long) part : 0;
    }

    /** Returns the tokens of the next batch that the time since the last one has earned; zero if tokens come one by one. */
    private static double earnedTokens(RedisTickScale ticks, long micros) {
        return hasBatches(ticks)
                ? (double) (ticks.perStep() / ticks.perToken()) * (micros % ticks.stepMicros()) / ticks.stepMicros()
                : 0;
    }

    /** Returns the maximum of missing ticks after a take at a moment, by a call that may wait for the given time. */
    private static long maxMissing(RedisTickScale ticks, long waitMicros, long micros) {
        long ahead =
                waitMicros == 0 ? 0 : ticks.ofSteps((waitMicros + micros % ticks.stepMicros()) / ticks.stepMicros());
        return Math.min(ticks.full() + ahead, RedisTickScale.MAX_TICKS);
    }

    /**
     * Returns the ticks missing after tokens were taken from a bucket even if it had too few. The debt is at most
     * what comes back in 365 days.
     */
    private static long missingAfterDebt(RedisTickScale ticks, long missing, long tokens) {
        long max =
                Math.min(ticks.full() + ticks.ofSteps(MAX_WAIT_MICROS / ticks.stepMicros()), RedisTickScale.MAX_TICKS);
        return tokens > RedisTickScale.MAX_TICKS / ticks.perToken()
                ? max
                : Math.min(missing + tokens * ticks.perToken(), max);
    }
}
