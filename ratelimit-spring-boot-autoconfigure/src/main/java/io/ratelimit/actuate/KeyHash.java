package io.ratelimit.actuate;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Hashes keys with a random secret of the process, so that a reader of a hash can't find its key by trial. Thread-safe.
 */
final class KeyHash {

    /** The length above which keys are shortened. */
    private static final int MAX_KEY_LENGTH = 256;

    private static final String ALGORITHM = "HmacSHA256";
    private static final int PREFIX_LENGTH = 200;
    private static final int HASH_BYTES = 8;

    private final SecretKeySpec secret;
    private final long[] seeds;

    KeyHash() {
        SecureRandom source = new SecureRandom();
        byte[] random = new byte[32];
        source.nextBytes(random);
        this.seeds = new long[] {source.nextLong(), source.nextLong() | 1, source.nextLong(), source.nextLong() | 1};
        this.secret = new SecretKeySpec(random, ALGORITHM);
    }

    /** Returns the hash of a key. A shortened key has the same hash as the whole one. */
    String of(String key) {
        return hmac(bounded(key));
    }

    /** Returns the key if it is short, and otherwise its beginning with a hash of the whole key, which keeps it unique. */
    String bounded(String key) {
        if (key.length() <= MAX_KEY_LENGTH) {
            return key;
        }
        int cut = Character.isHighSurrogate(key.charAt(PREFIX_LENGTH - 1)) ? PREFIX_LENGTH - 1 : PREFIX_LENGTH;
        return key.substring(0, cut) + "… " + unique(key);
    }

    /**
     * Returns 128 bits from two keyed hashes over four characters at a time, which is about ten times as fast as an HMAC.
     * That suffices to distinguish keys, and the result is shown only where the key itself may be shown.
     */
    private String unique(String key) {
        long first = seeds[0];
        long second = seeds[2];
        int i = key.length() & 3;
        long word = key.length();
        for (int j = 0; j < i; j++) {
            word = word << Character.SIZE | key.charAt(j);
        }
        while (true) {
            first = (first ^ word) * seeds[1];
            first ^= first >>> 32;
            second = (second ^ word) * seeds[3];
            second ^= second >>> 29;
            if (i >= key.length()) {
                break;
            }
            word = (long) key.charAt(i) << 48
                    | (long) key.charAt(i + 1) << 32
                    | (long) key.charAt(i + 2) << 16
                    | key.charAt(i + 3);
            i += 4;
        }
        return HexFormat.of().toHexDigits(first * seeds[1]) + HexFormat.of().toHexDigits(second * seeds[3]);
    }

    private String hmac(String text) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(secret);
            byte[] hash = mac.doFinal(text.getBytes(StandardCharsets.UTF_16BE));
            return HexFormat.of().formatHex(hash, 0, HASH_BYTES);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("every Java platform has " + ALGORITHM, missing);
        }
    }
}
