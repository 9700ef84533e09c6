package io.ratelimit.redis;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.netty.buffer.ByteBuf;

/** The arguments of a command, and the moment at which the command was written to the connection. */
final class TimedArguments extends CommandArgs<byte[], byte[]> {

    private volatile long sentAt;

    TimedArguments() {
        super(ByteArrayCodec.INSTANCE);
    }

    @Override
    public void encode(ByteBuf buffer) {
        sentAt = System.nanoTime();
        super.encode(buffer);
    }

    /** Returns when the command was written, as {@link System#nanoTime}; 0 if it wasn't yet. */
    long sentAt() {
        return sentAt;
    }
}
