package io.ratelimit;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;

/** Lets bytes pass as fast as a bucket allows, a token for each byte. Contains the two shaped streams. */
final class Shaper {
    /*
     * How far ahead pieces are reserved. Each piece is a reservation, and the thread parks once for it. Small pieces
     * flow evenly and let other streams of the bucket in between; large pieces park seldom. Ten milliseconds' worth is
     * a hundred parks a second at any rate.
     *
     * But a piece can't be larger than the bucket, and a thread that wakes up after a small bucket is full has lost
     * tokens for good. If a bucket is full in 130 µs and the thread sleeps 60 µs too long, it reaches two thirds of the
     * rate. Tokens are therefore reserved ahead: while bytes are at hand and the last piece is due within ten milliseconds,
     * another piece is reserved, and the bucket is never full meanwhile. No piece passes before it is due, and a late
     * thread finds the next pieces due as well.
     *
     * At most 64 pieces are reserved ahead. A bucket of one byte works, but at a large rate it passes at most 64
     * bytes a park, which is below its rate.
     */

    private static final Duration PACE = Duration.ofMillis(10);
    private static final int MAX_AHEAD = 64;

    /** The destination of bytes whose tokens are due. */
    private interface Passage {
        void pass(int from, int length) throws IOException;
    }

    private record Piece(int length, Reservation reservation) {}

    private final TokenBucket bucket;
    private final Duration maxWait;
    private final Duration pace;

    Shaper(TokenBucket bucket, Duration maxWait) {
        this.bucket = bucket;
        this.maxWait = ThrottlePolicy.atMostLongest(maxWait);
        this.pace = maxWait.isZero() || maxWait.compareTo(PACE) > 0 ? PACE : maxWait;
    }

    /** Waits for the tokens of this many bytes and lets the bytes pass, piece by piece. */
    private void pass(int length, Passage passage) throws IOException {
        Deque<Piece> ahead = new ArrayDeque<>();
        int passed = 0;
        int reserved = 0;
        try {
            while (passed < length) {
                reserved += reserve(length - reserved, ahead, passed);
                Piece next = await(ahead, passed);
                passage.pass(passed, next.length);
                passed += next.length;
            }
        } finally {
            while (!ahead.isEmpty()) {
                ahead.removeLast().reservation.cancel();
            }
        }
    }

    /** Reserves some of this many bytes, at least one piece if none is reserved, and returns how many. */
    private int reserve(int length, Deque<Piece> ahead, int passed) throws IOException {
        int reserved = 0;
        while (reserved < length && hasRoom(ahead)) {
            Piece piece = reserve(Math.min(length - reserved, pieceLength()));
            if (piece.reservation.decision().allowed()) {
                ahead.add(piece);
                reserved += piece.length;
            } else if (ahead.isEmpty()) {
                throw tooLong(piece, passed);
            } else {
                break;
            }
        }
        return reserved;
    }

    private static boolean hasRoom(Deque<Piece> ahead) {
        return ahead.isEmpty()
                || ahead.size() < MAX_AHEAD
                        && ahead.getLast().reservation.delay().compareTo(PACE) < 0;
    }

    private Piece reserve(int length) {
        Piece piece = new Piece(length, bucket.reserve(length, maxWait));
        boolean shrank = piece.reservation.decision().outcome() == Decision.Outcome.NEVER_FITS;
        return shrank ? reserve(Math.min(length, pieceLength())) : piece;
    }

    private Piece await(Deque<Piece> ahead, int passed) throws InterruptedIOException {
        Reservation first = ahead.getFirst().reservation;
        try {
            if (!first.delay().isZero()) {
                first.await();
            }
            return ahead.removeFirst();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            InterruptedIOException stopped = new InterruptedIOException(
                    "interrupted while waiting for tokens, after " + passed + " bytes had passed");
            stopped.bytesTransferred = passed;
            throw stopped;
        }
    }

    private IOException tooLong(Piece piece, int passed) {
        return new IOException("the tokens of the next %d bytes come in %s, and max-wait is %s; %d bytes had passed"
                .formatted(
                        piece.length,
                        Rate.format(piece.reservation.decision().retryAfter()),
                        Rate.format(maxWait),
                        passed));
    }

    /** Returns the bytes of a piece: at least one, and no more than the bucket holds. */
    private int pieceLength() {
        return (int) Math.min(spec().capacity(), bytesPerPace(spec().rate()));
    }

    private BucketSpec spec() {
        return bucket.state().scale().spec();
    }

    private long bytesPerPace(Rate rate) {
        double periods = (double) pace.toNanos() / rate.period().toNanos();
        return Math.max(1, (long) Math.min(rate.tokens() * periods, Integer.MAX_VALUE));
    }

    /** Writes no faster than a bucket allows. Like other streams, it is for one thread at a time. */
    static final class Output extends FilterOutputStream {

        private final Shaper shaper;

        Output(OutputStream out, Shaper shaper) {
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

    /**
     * Reads no faster than a bucket allows. Like other streams, it is for one thread at a time. Methods that aren't
     * overridden here call {@link #read(byte[], int, int)}: skipped bytes were sent too, and cost tokens.
     */
    static final class Input extends InputStream {

        private final InputStream in;
        private final Shaper shaper;

        /** The bytes that were received and are not paid for. */
        private ByteBuffer held = ByteBuffer.allocate(0);

        Input(InputStream in, Shaper shaper) {
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
            int received = length == 0 ? 0 : receive(bytes, offset, portion(length));
            int[] paid = {0};
            try {
                shaper.pass(received, (from, pieceLength) -> paid[0] += pieceLength);
            } catch (IOException unpaid) {
                hold(bytes, offset + paid[0], received - paid[0]);
                if (paid[0] == 0) {
                    throw unpaid;
                }
                return paid[0];
            }
            return received;
        }

        /** Returns how many of this many bytes to read ahead of their tokens. */
        private int portion(int length) {
            BucketSpec spec = shaper.spec();
            long max = Math.min(shaper.bytesPerPace(spec.rate()), MAX_AHEAD * spec.capacity());
            return (int) Math.min(length, max);
        }

        private int receive(byte[] bytes, int offset, int length) throws IOException {
            if (!held.hasRemaining()) {
                return in.read(bytes, offset, length);
            }
            int received = Math.min(length, held.remaining());
            held.get(bytes, offset, received);
            return received;
        }

        private void hold(byte[] bytes, int offset, int length) {
            held = ByteBuffer.allocate(length + held.remaining())
                    .put(bytes, offset, length)
                    .put(held)
                    .flip();
        }

        /** Returns the bytes at hand whose tokens are available. */
        @Override
        public int available() throws IOException {
            int atHand = Math.max(held.remaining(), held.remaining() + in.available());
            return (int) Math.min(atHand, shaper.bucket.snapshot().available());
        }

        @Override
        public void close() throws IOException {
            in.close();
        }
    }
}
