package io.ratelimit.redis;

import io.ratelimit.redis.RedisAnswers.Receipt;
import org.jspecify.annotations.Nullable;

/**
 * The moment at which taken tokens are due: the moment of the take, or the later moment that they were taken ahead for.
 *
 * <p>The exact moment is a tick, but a long can't hold the ticks since the epoch. So the steps are counted modulo a number
 * as large as there is room for, which is more than a month of steps. The server finds the nearest moment that fits.
 *
 * @param step the step of the clock, modulo {@code steps}
 * @param rest the ticks after the step
 * @param steps the modulus of the steps
 */
record QueuePosition(long step, long rest, long steps) {

    private static final long ROOM = 1L << 62;
    private static final long MAX_STEPS = 1L << 52;

    /** Returns the encoded position of tokens whose take left the given ticks missing. */
    static long of(RedisTickScale ticks, long missing, long micros) {
        long due = Math.max(missing - ticks.full(), 0);
        long steps = steps(ticks);
        long step = Math.floorMod(ticks.step(micros) + Math.floorDiv(due, ticks.perStep()), steps);
        return step * ticks.perStep() + Math.floorMod(due, ticks.perStep());
    }

    /** Returns the position in a receipt of the given scale; null without a receipt. */
    static @Nullable QueuePosition of(@Nullable Receipt receipt, RedisTickScale ticks) {
        return receipt == null
                ? null
                : new QueuePosition(
                        receipt.position() / ticks.perStep(), receipt.position() % ticks.perStep(), steps(ticks));
    }

    private static long steps(RedisTickScale ticks) {
        return Math.min(ROOM / ticks.perStep(), MAX_STEPS);
    }

    /** Returns the ticks from a moment to this one, negative if it is past; limited to {@link RedisTickScale#MAX_TICKS}. */
    long ticksFrom(long micros, RedisTickScale ticks) {
        long half = steps / 2;
        long ahead = Math.floorMod(step - ticks.step(micros) + half, steps) - half;
        long ofSteps = ticks.ofSteps(Math.abs(ahead));
        return (ahead < 0 ? -ofSteps : ofSteps) + rest;
    }
}
