package io.ratelimit;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;

/** Lets bytes pass as fast as a bucket allows, a token each: what shaped streams have in common. */
final class Shaper {
    /*
     * Pieces and how far ahead they are reserved. Each piece is a reservation and one park. Small pieces flow evenly and
     * let other streams of the same bucket in between, large ones park seldom: ten milliseconds' worth is a hundred
     * parks a second at any rate. But a piece can't be larger than the bucket, and who wakes up later than a small
     * bucket takes to be full has lost tokens for good: of one that is full in 130 µs a thread that parks, and sleeps
     * 60 µs longer, makes two thirds of the rate. So tokens are reserved ahead: while the bytes are at hand and the last
     * piece is due within ten milliseconds, another is reserved, and the bucket is never full meanwhile. No piece passes
     * before it is due, and who comes late finds the next ones due as well.
     *
     * That is bounded too: at most 64 pieces. A bucket of one byte works, byte by byte, but at a large rate it makes as
     * many bytes as 64 a park, never more than its rate.
     */

    private static final Duration PACE = Duration.ofMillis(10);
    private static final int MOST_AHEAD = 64;

    /** Where the bytes go when their tokens are due. */
    interface Passage {
        void pass(int from, int length) throws IOException;
    }

    private record Piece(int length, Reservation reservation) {}

    private final TokenBucket bucket;
    private final Duration maxWait;
    private final Duration pace;

    Shaper(TokenBucket bucket, Duration maxWait) {
        this.bucket = bucket;
        this.maxWait = Waiting.cut(maxWait);
        this.pace = maxWait.isZero() || maxWait.compareTo(PACE) > 0 ? PACE : maxWait;
    }

    /** Waits for the tokens of so many bytes and lets them pass, piece by piece. */
    void pass(int length, Passage passage) throws IOException {
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

    /** Reserves some of so many bytes: at least one piece if there is none ahead. */
    private int reserve(int more, Deque<Piece> ahead, int passed) throws IOException {
        int reserved = 0;
        while (reserved < more && hasRoom(ahead)) {
            Piece piece = reserve(Math.min(more - reserved, pieceLength()));
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
                || ahead.size() < MOST_AHEAD
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
                        Rate.textOf(piece.reservation.decision().retryAfter()),
                        Rate.textOf(maxWait),
                        passed));
    }

    /** The bytes of a piece: no more than the bucket holds, and at least one. */
    private int pieceLength() {
        BucketSpec spec = bucket.level().ticks().spec();
        return (int) Math.min(spec.capacity(), worth(spec.rate()));
    }

    /** The bytes that come in the time of one piece. */
    private long worth(Rate rate) {
        double periods = (double) pace.toNanos() / rate.period().toNanos();
        return Math.max(1, (long) Math.min(rate.tokens() * periods, Integer.MAX_VALUE));
    }

    /** How many of so many bytes to ask a source for, before they are paid for. */
    int portion(int length) {
        BucketSpec spec = bucket.level().ticks().spec();
        long most = Math.min(worth(spec.rate()), MOST_AHEAD * spec.capacity());
        return (int) Math.min(length, most);
    }

    /** How many of so many bytes could pass without waiting. */
    int passing(int length) {
        return (int) Math.min(length, bucket.snapshot().available());
    }
}
