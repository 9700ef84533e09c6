package io.ratelimit.redis;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;

/** An array of whole numbers, as a script returns it. */
final class LongsOutput extends CommandOutput<byte[], byte[], long[]> {

    private int read;

    LongsOutput() {
        super(ByteArrayCodec.INSTANCE, new long[0]);
    }

    @Override
    public void multi(int count) {
        output = new long[Math.max(count, 0)];
    }

    @Override
    public void set(long number) {
        output[read++] = number;
    }
}
