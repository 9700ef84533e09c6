package io.ratelimit.redis;

import io.ratelimit.failover.SpecCache;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * The arguments of the script for one bucket: numbers of eight bytes each, and then the name of the spec. The most frequent
 * ones, for one token at once, are computed once for each spec. Thread-safe.
 */
final class ScriptArguments {

    private static final int NUMBERS_TO_TAKE = 5;
    private static final int NUMBERS_TO_GIVE_BACK = 5;

    /** The price of a cost that never fits: no bucket has so many ticks. */
    private static final long NEVER = RedisTickScale.MAX_TICKS + 1;

    private final SpecCache<RedisTickScale, byte[]> toTakeOne = new SpecCache<>(ticks -> numbers(ticks, 1, 0));

    /** Returns the arguments to take tokens, or to look. The caller must not change the bytes. */
    byte[] toTake(RedisTickScale ticks, long cost, long waitMicros) {
        return cost == 1 && waitMicros == 0 ? toTakeOne.get(ticks) : numbers(ticks, cost, waitMicros);
    }

    private static byte[] numbers(RedisTickScale ticks, long cost, long waitMicros) {
        return bufferFor(ticks, NUMBERS_TO_TAKE)
                .putDouble(ticks.perStep())
                .putDouble(ticks.stepMicros())
                .putDouble(ticks.full())
                .putDouble(ticks.fits(cost) ? ticks.of(cost) : NEVER)
                .putDouble(waitMicros)
                .array();
    }

    /**
     * Returns the arguments to give tokens back.
     *
     * @param due when the tokens were due; null if it isn't recorded
     * @param before the ticks missing before the take when the tokens were due, plus the ticks given back until the take
     */
    static byte[] toGiveBack(RedisTickScale ticks, long cost, @Nullable QueuePosition due, long before) {
        ByteBuffer numbers = bufferFor(ticks, NUMBERS_TO_GIVE_BACK).putDouble(cost);
        if (due != null) {
            numbers.putDouble(due.step())
                    .putDouble(due.steps())
                    .putDouble(due.rest())
                    .putDouble(before);
        }
        return numbers.array();
    }

    /** Returns a buffer with the name of the spec after room for the numbers, which are zero. */
    private static ByteBuffer bufferFor(RedisTickScale ticks, int numbers) {
        byte[] name = ticks.name().getBytes(StandardCharsets.US_ASCII);
        ByteBuffer bytes = ByteBuffer.allocate(numbers * Double.BYTES + name.length);
        return bytes.put(numbers * Double.BYTES, name);
    }
}
