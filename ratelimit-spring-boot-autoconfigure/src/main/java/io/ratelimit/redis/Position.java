package io.ratelimit.redis;

import io.ratelimit.Decision.Answer;
import org.jspecify.annotations.Nullable;

/**
 * When tokens that were taken ahead were due: the place in the line of a bucket, told in a single number.
 *
 * <p>The exact moment is a tick, but the ticks since the epoch are more than a long holds. So the steps are counted round
 * a clock face that is as large as there is room for, more than a month, and the server knows which round is meant.
 *
 * @param step the step of the clock, modulo {@code steps}
 * @param rest the ticks beyond it
 * @param steps how many steps there are on the clock face
 */
record Position(long step, long rest, long steps) {

    private static final long ROOM = 1L << 62;
    private static final long MOST_STEPS = 1L << 52;

    /** The place of tokens that left a bucket with so many ticks missing. */
    static long of(RedisTicks ticks, long missing, long micros) {
        long due = missing - ticks.full();
        long steps = steps(ticks);
        long step = Math.floorMod(ticks.step(micros) + Math.floorDiv(due, ticks.perStep()), steps);
        return step * ticks.perStep() + Math.floorMod(due, ticks.perStep());
    }

    /** The place noted in an answer that was taken by these ticks; null if none was. */
    static @Nullable Position of(Answer taken, RedisTicks ticks) {
        return taken.position() < 0
                ? null
                : new Position(taken.position() / ticks.perStep(), taken.position() % ticks.perStep(), steps(ticks));
    }

    private static long steps(RedisTicks ticks) {
        return Math.min(ROOM / ticks.perStep(), MOST_STEPS);
    }

    /** The ticks from a moment until it; at most the most that anything has, and as many less than zero. */
    long ticksFrom(long micros, RedisTicks ticks) {
        long half = steps / 2;
        long ahead = Math.floorMod(step - ticks.step(micros) + half, steps) - half;
        long ofSteps = ticks.ofSteps(Math.abs(ahead));
        return (ahead < 0 ? -ofSteps : ofSteps) + rest;
    }
}
