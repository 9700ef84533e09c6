package io.ratelimit;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * Reads no faster than a bucket allows. As other streams, it is for one thread at a time. What isn't overridden here goes
 * by way of {@link #read(byte[], int, int)}: what is skipped was sent all the same, and costs.
 */
final class ShapedInputStream extends InputStream {

    private final InputStream in;
    private final Shaper shaper;

    /** Bytes that have come and are not paid for. */
    private ByteBuffer held = ByteBuffer.allocate(0);

    ShapedInputStream(InputStream in, Shaper shaper) {
        this.in = Objects.requireNonNull(in, "in");
        this.shaper = shaper;
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : Byte.toUnsignedInt(one[0]);
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        int came = length == 0 ? 0 : receive(bytes, offset, shaper.portion(length));
        int[] paid = {0};
        try {
            shaper.pass(came, (from, pieceLength) -> paid[0] += pieceLength);
        } catch (IOException unpaid) {
            hold(bytes, offset + paid[0], came - paid[0]);
            if (paid[0] == 0) {
                throw unpaid;
            }
            return paid[0];
        }
        return came;
    }

    private int receive(byte[] bytes, int offset, int length) throws IOException {
        if (!held.hasRemaining()) {
            return in.read(bytes, offset, length);
        }
        int came = Math.min(length, held.remaining());
        held.get(bytes, offset, came);
        return came;
    }

    private void hold(byte[] bytes, int offset, int length) {
        held = ByteBuffer.allocate(length + held.remaining())
                .put(bytes, offset, length)
                .put(held)
                .flip();
    }

    @Override
    public int available() throws IOException {
        int there = Math.max(held.remaining(), held.remaining() + in.available());
        return shaper.passing(there);
    }

    @Override
    public void close() throws IOException {
        in.close();
    }
}
