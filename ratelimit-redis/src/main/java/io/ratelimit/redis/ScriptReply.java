package io.ratelimit.redis;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The reply of the script: for each bucket numbers in the order in which {@code bucket.lua} returns them. A give returns
 * an empty reply. If the call is to be made with other periods, the reply is the server's time alone.
 */
final class ScriptReply {

    private static final int NUMBERS = 6;

    private long[] numbers = new long[NUMBERS];
    private boolean hasOtherPeriods;

    /** Returns whether the script did nothing, since the server's time is outside the periods of a calendar. */
    boolean hasOtherPeriods() {
        return hasOtherPeriods;
    }

    /** Returns the time of a bucket in microseconds: the server's, or that of the bucket's calendar. */
    long now(int bucket) {
        return numbers[NUMBERS * bucket];
    }

    /** Returns the missing ticks of a bucket; below zero as the script returned them. */
    long missing(int bucket) {
        return numbers[NUMBERS * bucket + 1];
    }

    /** Returns the missing ticks of a bucket, also if it had too few tokens. */
    long lacking(int bucket) {
        long missing = missing(bucket);
        return missing < 0 ? -missing - 1 : missing;
    }

    /** Returns the name of the count of ticks given back to a bucket. */
    long begun(int bucket) {
        return numbers[NUMBERS * bucket + 2];
    }

    /** Returns the ticks that had been given back to a bucket. */
    long returned(int bucket) {
        return numbers[NUMBERS * bucket + 3];
    }

    /** Returns the ticks that a lease took, with those of the price; 0 if at most the price was taken. */
    long leased(int bucket) {
        return numbers[NUMBERS * bucket + 4];
    }

    /** Returns the time of a bucket, as {@link #now}, or the later moment at which it stands still. */
    long at(int bucket) {
        return Math.max(numbers[NUMBERS * bucket + 5], now(bucket));
    }

    /** Reads a reply: one text, or an array of one text for each bucket. */
    static final class Output extends CommandOutput<byte[], byte[], ScriptReply> {

        private int first;

        Output() {
            super(ByteArrayCodec.INSTANCE, new ScriptReply());
        }

        @Override
        public void multi(int count) {
            output.numbers = new long[NUMBERS * Math.max(count, 0)];
        }

        @Override
        public void set(@Nullable ByteBuffer text) {
            if (text != null) {
                int next = first;
                first += NUMBERS;
                while (next < first && text.hasRemaining() && !isSpec(text)) {
                    output.numbers[next++] = (long) text.getDouble();
                }
                output.hasOtherPeriods |= next == first - NUMBERS + 1;
            }
        }

        /**
         * Returns whether a spec follows, which begins with a digit, a byte from 0x30 to 0x39. No number does: the first byte
         * of 0 is 0, that of 1 and more at least 0x3F, and that of a negative number has the sign.
         */
        private static boolean isSpec(ByteBuffer text) {
            byte next = text.get(text.position());
            return next >= '0' && next <= '9';
        }
    }
}
