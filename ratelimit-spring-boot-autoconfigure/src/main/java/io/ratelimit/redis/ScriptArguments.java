package io.ratelimit.redis;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * What the script is told of a bucket: numbers as it has them, eight bytes each, and the name of the spec behind them. What
 * is asked most, a token at once, is written out once for each spec. Thread-safe.
 */
final class ScriptArguments {

    private static final int NUMBERS_TO_TAKE = 5;
    private static final int NUMBERS_TO_GIVE_BACK = 4;

    /** No bucket has so many ticks. */
    private static final long NEVER = RedisTicks.MOST + 1;

    private final PerSpec<RedisTicks, byte[]> toTakeOne = new PerSpec<>(ticks -> numbers(ticks, 1, 0));

    /** To take so many tokens, or to look whether they are there. The caller must not change the bytes. */
    byte[] toTake(RedisTicks ticks, long cost, long waitMicros) {
        return cost == 1 && waitMicros == 0 ? toTakeOne.of(ticks) : numbers(ticks, cost, waitMicros);
    }

    private static byte[] numbers(RedisTicks ticks, long cost, long waitMicros) {
        return with(ticks, NUMBERS_TO_TAKE)
                .putDouble(ticks.perStep())
                .putDouble(ticks.stepMicros())
                .putDouble(ticks.full())
                .putDouble(ticks.fits(cost) ? ticks.of(cost) : NEVER)
                .putDouble(waitMicros)
                .array();
    }

    /**
     * To give so many tokens back.
     *
     * @param due when they were due, if that was noted
     */
    static byte[] toGiveBack(RedisTicks ticks, long cost, @Nullable Position due) {
        ByteBuffer numbers = with(ticks, NUMBERS_TO_GIVE_BACK).putDouble(cost);
        if (due != null) {
            numbers.putDouble(due.step()).putDouble(due.steps()).putDouble(due.rest());
        }
        return numbers.array();
    }

    /** Room for so many numbers, zero as yet, before the name. */
    private static ByteBuffer with(RedisTicks ticks, int numbers) {
        byte[] name = ticks.name().getBytes(StandardCharsets.US_ASCII);
        ByteBuffer bytes = ByteBuffer.allocate(numbers * Double.BYTES + name.length);
        return bytes.put(numbers * Double.BYTES, name);
    }
}
