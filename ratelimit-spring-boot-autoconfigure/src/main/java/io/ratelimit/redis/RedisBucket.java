package io.ratelimit.redis;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A bucket as Redis keeps it, at one moment: the arithmetic of {@code bucket.lua}, told there, for whom scripts are not
 * allowed. It says the same to the last tick.
 *
 * @param missing the ticks that it is missing for being full; what is beyond those of a full bucket, it owes
 * @param promised the ticks until the last moment promised to who took ahead, where the debt doesn't show it any more
 * @param moved whether that promise was made under another spec, so that no place in the line tells anything
 * @param keptUntil the second of the server's clock until which it is kept even if it is full, for it was written under a
 *     spec by which it isn't full earlier; 0 for none
 * @param at the moment, in microseconds of the server
 */
record RedisBucket(RedisTicks ticks, long missing, long promised, boolean moved, long keptUntil, long at) {

    private static final long SLACK_MILLIS = 1_000;
    private static final long SECOND_MICROS = 1_000_000;
    private static final long AHEAD_MICROS = 60 * SECOND_MICROS;

    /** The bucket of a key that is not there. */
    static RedisBucket full(RedisTicks ticks, long at) {
        return new RedisBucket(ticks, 0, 0, false, 0, at);
    }

    /** The bucket that a value tells of, under the spec it was written under; a full one if there is none. */
    static RedisBucket read(byte @Nullable [] value, RedisTicks otherwise, long now) {
        return value == null ? full(otherwise, now) : parse(value).notAhead(now).at(now);
    }

    private static RedisBucket parse(byte[] value) {
        ByteBuffer numbers = ByteBuffer.wrap(value);
        try {
            long at = whole(numbers.getDouble());
            long missing = whole(numbers.getDouble());
            String[] text = US_ASCII.decode(numbers).toString().split(" ", -1);
            RedisTicks ticks = RedisTicks.named(text[0]);
            boolean kept = text.length > 1 && text[text.length - 1].startsWith("+");
            long promised = text.length > (kept ? 2 : 1) ? Long.parseLong(text[1]) : 0;
            long keptUntil = kept ? Long.parseLong(text[text.length - 1]) : 0;
            whole(Math.abs((double) promised));
            whole((double) keptUntil * SECOND_MICROS);
            return new RedisBucket(ticks, missing, Math.abs(promised), promised < 0, keptUntil, at);
        } catch (NumberFormatException | BufferUnderflowException other) {
            throw new MisconfiguredRedisException("what a key of ratelimit holds is no bucket", other);
        }
    }

    /** A number as values have them. */
    private static long whole(double number) {
        if (!(number >= 0 && number <= RedisTicks.MOST)) {
            throw new NumberFormatException(number + " is nothing that a bucket has");
        }
        return (long) number;
    }

    /** What is written; null for a bucket that is not kept. */
    byte @Nullable [] value() {
        if (missing == 0 && promised == 0 && keptUntil == 0) {
            return null;
        }
        byte[] text = text().getBytes(US_ASCII);
        ByteBuffer value = ByteBuffer.allocate(2 * Double.BYTES + text.length);
        return value.putDouble(at).putDouble(missing).put(text).array();
    }

    private String text() {
        String name = ticks.name();
        String text = moved ? name + " -" + promised : promised > debt() ? name + " " + promised : name;
        return keptUntil > 0 ? text + " +" + keptUntil : text;
    }

    /** How long what is written at a moment must be kept. */
    long millisToKeep(long now) {
        long micros = Math.max(fullAt(), keptUntil * SECOND_MICROS) - now;
        return (micros + 999) / 1_000 + SLACK_MILLIS;
    }

    /** When nothing is missing and all promises are kept, in microseconds. */
    private long fullAt() {
        return at + ticks.microsUntil(Math.max(missing, promised), at);
    }

    /** Whether the clock had run ahead when a value was written, and was set right since. */
    static boolean ranAhead(byte @Nullable [] value, long now) {
        return value != null && parse(value).ranAhead(now);
    }

    private boolean ranAhead(long now) {
        return at - now > AHEAD_MICROS + ticks.stepMicros();
    }

    /** The same bucket; if the clock had run ahead, its time begins to count again. */
    private RedisBucket notAhead(long now) {
        if (!ranAhead(now)) {
            return this;
        }
        long soon = now + 1 + (at - now - 1) % ticks.stepMicros();
        return new RedisBucket(ticks, missing, promised, moved, keptUntil, soon);
    }

    /** The same bucket at a later moment. */
    private RedisBucket at(long now) {
        long kept = keptUntil * SECOND_MICROS <= now ? 0 : keptUntil;
        if (now <= at) {
            return new RedisBucket(ticks, missing, promised, moved, kept, at);
        }
        long passed = ticks.ofSteps(ticks.step(now) - ticks.step(at));
        long left = Math.max(promised - passed, 0);
        return new RedisBucket(ticks, Math.max(missing - passed, 0), left, moved && left > 0, kept, now);
    }

    /** The same bucket under another spec: this one counts until the last who was promised a moment is served. */
    RedisBucket under(RedisTicks other) {
        if (other.equals(ticks)) {
            return this;
        }
        long last = lastPromise();
        long served = at + ticks.microsUntil(last, at);
        long passed = ticks.ofSteps(ticks.step(served) - ticks.step(at));
        long kept = missingUnder(other, ticks.full() - Math.max(missing - passed, 0));
        long here = Math.min(kept + other.ofSteps(other.step(served) - other.step(at)), RedisTicks.MOST);
        long promise = last == 0 ? 0 : other.ofSteps(other.step(served + other.stepMicros() - 1) - other.step(at));
        return new RedisBucket(other, here, promise, last > 0, Math.max(keptUntil, secondOf(fullAt())), at);
    }

    /** Rounded up; 0 for a bucket that is full already. */
    private long secondOf(long fullAt) {
        return fullAt > at ? (Math.min(fullAt, RedisTicks.MOST) + SECOND_MICROS - 1) / SECOND_MICROS : 0;
    }

    private long missingUnder(RedisTicks other, long have) {
        long tokens = ticks.tokens(have);
        if (tokens >= other.capacity()) {
            return 0;
        }
        long part = partOfToken(have - tokens * ticks.perToken(), ticks.perToken(), other.perToken());
        return other.full() - (tokens * other.perToken() + part);
    }

    /** Just as the script does, which has doubles. */
    private static long partOfToken(double rest, double of, double to) {
        return rest * to > RedisTicks.MOST
                ? (long) Math.max(Math.floor(rest / of * to) - 1, 0)
                : (long) Math.floor(rest * to / of);
    }

    private long debt() {
        return Math.max(missing - ticks.full(), 0);
    }

    /** The ticks until the last moment promised to who took ahead. */
    private long lastPromise() {
        return Math.max(debt(), promised);
    }

    /** Whether a call that may wait so long would find the tokens. */
    boolean has(long cost, long waitMicros) {
        return ticks.fits(cost) && missing + ticks.of(cost) <= ticks.limit(waitMicros, at);
    }

    /** The bucket after the tokens were taken. */
    RedisBucket take(long cost) {
        return new RedisBucket(ticks, missing + ticks.of(cost), promised, moved, keptUntil, at);
    }

    /**
     * The bucket after the tokens were given back: those that nobody behind stands on.
     *
     * @param due when they were due, or null if it wasn't noted
     */
    RedisBucket giveBack(long cost, @Nullable Position due) {
        long price = ticks.of(cost);
        long last = lastPromise();
        long behind = last == 0 ? 0 : due == null || moved ? price : last - due.ticksFrom(at, ticks);
        if (missing == 0 || behind < 0 || behind >= price) {
            return this;
        }
        long missingStill = Math.max(missing - price + behind, 0);
        return new RedisBucket(ticks, missingStill, behind > 0 ? last : promised, moved, keptUntil, at);
    }
}
