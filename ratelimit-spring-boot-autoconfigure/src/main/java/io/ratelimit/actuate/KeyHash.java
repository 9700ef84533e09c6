package io.ratelimit.actuate;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Hashes keys by a secret of the process, so that nobody can try out whose hash it is. Thread-safe.
 */
final class KeyHash {

    /** Longer keys are cut. */
    private static final int LONGEST_KEY = 256;

    private static final String ALGORITHM = "HmacSHA256";
    private static final int SHOWN_OF_LONG = 200;
    private static final int UNIQUE_BYTES = 16;
    private static final int SHOWN_BYTES = 8;

    private final SecretKeySpec secret;

    KeyHash() {
        byte[] random = new byte[32];
        new SecureRandom().nextBytes(random);
        this.secret = new SecretKeySpec(random, ALGORITHM);
    }

    /** What stands for a key: of a cut one, the same as of the whole. */
    String of(String key) {
        return hex(bounded(key), SHOWN_BYTES);
    }

    /** The key itself if it is not long, otherwise its beginning and a hash of the whole, which makes it another. */
    String bounded(String key) {
        if (key.length() <= LONGEST_KEY) {
            return key;
        }
        int cut = Character.isHighSurrogate(key.charAt(SHOWN_OF_LONG - 1)) ? SHOWN_OF_LONG - 1 : SHOWN_OF_LONG;
        return key.substring(0, cut) + "… " + hex(key, UNIQUE_BYTES);
    }

    private String hex(String text, int bytes) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(secret);
            byte[] hash = mac.doFinal(text.getBytes(StandardCharsets.UTF_16BE));
            return HexFormat.of().formatHex(hash, 0, bytes);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("every Java platform has " + ALGORITHM, missing);
        }
    }
}
