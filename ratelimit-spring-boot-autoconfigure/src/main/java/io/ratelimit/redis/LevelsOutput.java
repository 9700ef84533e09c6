package io.ratelimit.redis;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** The time, and what each bucket is missing then, as the script returns it: a text for each, and alone if there is one. */
final class LevelsOutput extends CommandOutput<byte[], byte[], long[]> {

    private int read;

    LevelsOutput() {
        super(ByteArrayCodec.INSTANCE, new long[2]);
    }

    @Override
    public void multi(int count) {
        output = new long[1 + Math.max(count, 0)];
    }

    /** Nothing is replied to what was given back. */
    @Override
    public void set(@Nullable ByteBuffer reply) {
        if (reply != null) {
            output[0] = (long) reply.getDouble();
            output[++read] = (long) reply.getDouble();
        }
    }
}
