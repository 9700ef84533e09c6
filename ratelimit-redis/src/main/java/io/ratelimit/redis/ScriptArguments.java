package io.ratelimit.redis;

import io.ratelimit.CalendarClock;
import io.ratelimit.redis.RedisAnswers.ScriptReceipt;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The arguments of the script for one bucket: numbers of eight bytes each, and then the name of the spec. */
final class ScriptArguments {

    /** The price of a cost that never fits: no bucket has so many ticks. */
    private static final long NEVER = RedisTickScale.MAX_TICKS + 1;

    /** The first number of the arguments for a bucket with calendar refill. */
    private static final double CALENDAR = -1;

    /** The place of the wait: behind the seven numbers of the calendar and four others. */
    private static final int WAIT_WITH_CALENDAR = 11 * Double.BYTES;

    /** The step in the arguments of a give without a receipt. */
    private static final long NOT_RECORDED = -1;

    /** The kept tokens in the arguments of a give, if the bucket owes the tokens instead. */
    private static final long OWED = -1;

    private static final byte[] AS_BEFORE = {};

    private ScriptArguments() {}

    /**
     * Returns the arguments to take tokens, or to look at the bucket.
     *
     * @param waitMicros the microseconds that the call may wait; below zero, the ticks that it has to leave
     */
    static byte[] toTake(RedisTickScale ticks, long cost, long waitMicros) {
        return of(ticks, ticks.perStep(), ticks.stepMicros(), ticks.full(), price(ticks, cost), waitMicros);
    }

    /**
     * Returns the arguments to take tokens ahead of their use.
     *
     * @param cost the tokens of the call; 0 if no call needs any
     * @param micros the time for which the tokens are leased; 0 to take the cost several times at once
     */
    static byte[] toLease(RedisTickScale ticks, long cost, long micros, long maxTokens) {
        return toLease(ticks, cost, 0, micros, maxTokens);
    }

    /** @param waitMicros as for {@link #toTake} */
    static byte[] toLease(RedisTickScale ticks, long cost, long waitMicros, long micros, long maxTokens) {
        long max = Math.min(maxTokens, RedisTickScale.MAX_TICKS / ticks.perToken()) * ticks.perToken();
        return of(
                ticks, ticks.perStep(), ticks.stepMicros(), ticks.full(), price(ticks, cost), waitMicros, micros, max);
    }

    /** Returns the argument of one of several buckets that are taken from by themselves: an empty one if it is as before. */
    static byte[] each(List<byte[]> arguments, int i) {
        return i > 0 && arguments.get(i) == arguments.get(i - 1) ? AS_BEFORE : arguments.get(i);
    }

    private static long price(RedisTickScale ticks, long cost) {
        return ticks.fits(cost) ? ticks.price(cost) : NEVER;
    }

    /** @param kept the tokens of the same take that are not given back */
    static byte[] toGiveBack(RedisTickScale ticks, long tokens, long kept, @Nullable ScriptReceipt receipt) {
        return receipt == null
                ? of(ticks, tokens, NOT_RECORDED, 0, 0, kept, 0)
                : of(ticks, tokens, receipt.step(), receipt.rest(), receipt.before(), kept, receipt.begun());
    }

    /** Returns the arguments to take tokens even if the bucket has too few. */
    static byte[] toOwe(RedisTickScale ticks, long tokens) {
        return of(ticks, tokens, NOT_RECORDED, 0, 0, OWED, 0);
    }

    /**
     * Returns arguments preceded by the periods of a calendar around the server's time, from which the script computes the
     * time of the calendar.
     */
    static byte[] withCalendar(CalendarClock calendar, long serverMicros, byte[] arguments) {
        ByteBuffer bytes = ByteBuffer.allocate(7 * Double.BYTES + arguments.length);
        bytes.putDouble(CALENDAR).putDouble(calendar.periodMicros());
        for (long number : calendar.around(serverMicros)) {
            bytes.putDouble(number);
        }
        return bytes.put(arguments).array();
    }

    /**
     * Sets the wait in the arguments of a take with a calendar to the time that the calendar's clock has at the end of the
     * wait, less its time now. This clock is faster than the server's, so a true wait would end before its batches come.
     *
     * @param micros the server's time in microseconds
     */
    static void setWait(byte[] arguments, CalendarClock calendar, long micros) {
        ByteBuffer bytes = ByteBuffer.wrap(arguments);
        long wait = (long) bytes.getDouble(WAIT_WITH_CALENDAR);
        if (wait > 0) {
            bytes.putDouble(WAIT_WITH_CALENDAR, calendar.at(micros + wait) - calendar.at(micros));
        }
    }

    private static byte[] of(RedisTickScale ticks, long... numbers) {
        byte[] name = ticks.name().getBytes(StandardCharsets.US_ASCII);
        ByteBuffer bytes = ByteBuffer.allocate(numbers.length * Double.BYTES + name.length);
        for (long number : numbers) {
            bytes.putDouble(number);
        }
        return bytes.put(name).array();
    }
}
