package io.ratelimit;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Objects;

/** Writes no faster than a bucket allows. As other streams, it is for one thread at a time. */
final class ShapedOutputStream extends FilterOutputStream {

    private final Shaper shaper;

    ShapedOutputStream(OutputStream out, Shaper shaper) {
        super(Objects.requireNonNull(out, "out"));
        this.shaper = shaper;
    }

    @Override
    public void write(int oneByte) throws IOException {
        shaper.pass(1, (from, length) -> out.write(oneByte));
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, bytes.length);
        shaper.pass(length, (from, pieceLength) -> out.write(bytes, offset + from, pieceLength));
    }
}
