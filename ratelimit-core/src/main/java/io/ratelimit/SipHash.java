package io.ratelimit;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;

/**
 * SipHash of a text (Aumasson and Bernstein, <em>SipHash: a fast short-input PRF</em>). The hash of 128 bits is
 * SipHash-2-4, as in the authors' reference code. The hash of 64 bits, for tables in memory, is SipHash-1-3, as in the
 * hash tables of Rust and Python. The input is the text's UTF-16, low byte first. The short hash reads a text of Latin-1 as one
 * byte a char, which takes half the time. Without the key a client can neither predict a hash nor construct two texts
 * whose hashes collide.
 */
final class SipHash {

    private static final int CHARS_PER_WORD = 4;
    private static final int BYTES_PER_WORD = 8;

    /** Keeps the hash of a text's UTF-16 apart from that of a Latin-1 text with the same bytes. */
    private static final long FORM_WIDE = 1;

    static final SipHash PROCESS = withRandomKey();

    private final long k0;
    private final long k1;

    SipHash(long k0, long k1) {
        this.k0 = k0;
        this.k1 = k1;
    }

    static SipHash withRandomKey() {
        SecureRandom random = new SecureRandom();
        return new SipHash(random.nextLong(), random.nextLong());
    }

    long hash64(String text) {
        State state = new State(k0, k1, 0, 1, 3);
        return state.absorbLatin1(text) ? state.finish(0xff) : wideHash64(text);
    }

    private long wideHash64(String text) {
        State state = new State(k0, k1, FORM_WIDE, 1, 3);
        state.absorb(text);
        return state.finish(0xff);
    }

    /** Returns 16 chars below 256. */
    String hash128(String text) {
        State state = new State(k0, k1, 0xee, 2, 4);
        state.absorb(text);
        ByteBuffer bytes = ByteBuffer.allocate(16);
        bytes.putLong(state.finish(0xee)).putLong(state.finishAgain());
        return new String(bytes.array(), StandardCharsets.ISO_8859_1);
    }

    private static final class State {
        private final int rounds;
        private final int lastRounds;
        private long v0;
        private long v1;
        private long v2;
        private long v3;

        State(long k0, long k1, long form, int rounds, int lastRounds) {
            this.rounds = rounds;
            this.lastRounds = lastRounds;
            v0 = k0 ^ 0x736f6d6570736575L;
            v1 = k1 ^ 0x646f72616e646f6dL ^ form;
            v2 = k0 ^ 0x6c7967656e657261L;
            v3 = k1 ^ 0x7465646279746573L;
        }

        void absorb(String text) {
            int whole = text.length() - text.length() % CHARS_PER_WORD;
            for (int i = 0; i < whole; i += CHARS_PER_WORD) {
                absorb(word(text, i, CHARS_PER_WORD));
            }
            absorb(word(text, whole, text.length() - whole) | (2L * text.length()) << 56);
        }

        /** Absorbs one byte a char; returns false if a char doesn't fit, and then the state has no use. */
        boolean absorbLatin1(String text) {
            int whole = text.length() - text.length() % BYTES_PER_WORD;
            int all = 0;
            for (int i = 0; i < whole; i += BYTES_PER_WORD) {
                long word = 0;
                for (int j = 0; j < BYTES_PER_WORD; j++) {
                    char c = text.charAt(i + j);
                    all |= c;
                    word |= (long) c << (8 * j);
                }
                absorb(word);
            }
            long last = (long) text.length() << 56;
            for (int i = whole; i < text.length(); i++) {
                char c = text.charAt(i);
                all |= c;
                last |= (long) c << (8 * (i - whole));
            }
            absorb(last);
            return all < 256;
        }

        private static long word(String text, int start, int chars) {
            long word = 0;
            for (int i = 0; i < chars; i++) {
                word |= (long) text.charAt(start + i) << (16 * i);
            }
            return word;
        }

        private void absorb(long word) {
            v3 ^= word;
            rounds(rounds);
            v0 ^= word;
        }

        long finish(long mark) {
            v2 ^= mark;
            rounds(lastRounds);
            return v0 ^ v1 ^ v2 ^ v3;
        }

        long finishAgain() {
            v1 ^= 0xdd;
            rounds(lastRounds);
            return v0 ^ v1 ^ v2 ^ v3;
        }

        private void rounds(int count) {
            for (int i = 0; i < count; i++) {
                v0 += v1;
                v2 += v3;
                v1 = Long.rotateLeft(v1, 13) ^ v0;
                v3 = Long.rotateLeft(v3, 16) ^ v2;
                v0 = Long.rotateLeft(v0, 32);
                v2 += v1;
                v0 += v3;
                v1 = Long.rotateLeft(v1, 17) ^ v2;
                v3 = Long.rotateLeft(v3, 21) ^ v0;
                v2 = Long.rotateLeft(v2, 32);
            }
        }
    }
}
