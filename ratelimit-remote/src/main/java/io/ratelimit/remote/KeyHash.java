package io.ratelimit.remote;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReferenceArray;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * A keyed hash of texts that clients choose. It has the same length for all texts, and contains nothing that a client sent.
 * Without the secret it doesn't show which text it belongs to. Thread-safe.
 */
public final class KeyHash {

    /** The length of a hash. */
    public static final int BYTES = 16;

    /** The key of the hash if there is no secret. It hides nothing that can be guessed. */
    private static final String NO_SECRET = "io.ratelimit";

    private static final String ALGORITHM = "HmacSHA256";
    private static final int SPARE_MACS = 64;

    private final Mac mac;
    private final AtomicReferenceArray<Mac> spare = new AtomicReferenceArray<>(SPARE_MACS);

    /** @param secret the key of the hash; empty for none */
    public KeyHash(String secret) {
        String key = secret.isEmpty() ? NO_SECRET : secret;
        try {
            this.mac = Mac.getInstance(ALGORITHM);
            this.mac.init(new SecretKeySpec(key.getBytes(StandardCharsets.UTF_8), ALGORITHM));
            this.mac.clone();
        } catch (GeneralSecurityException | CloneNotSupportedException missing) {
            throw new IllegalStateException("this JVM has no " + ALGORITHM + " that can be copied", missing);
        }
    }

    /** Returns the hash of a text. */
    public byte[] of(String text) {
        int slot = (int) Thread.currentThread().getId() & (SPARE_MACS - 1);
        Mac spareMac = spare.getAndSet(slot, null);
        Mac mac = spareMac != null ? spareMac : copy();
        byte[] hash = mac.doFinal(bytes(text));
        spare.set(slot, mac);
        return Arrays.copyOf(hash, BYTES);
    }

    /** Copies the MAC, as setting one up costs several times as much as using it. Threads may be virtual, so none keeps one. */
    private Mac copy() {
        try {
            return (Mac) mac.clone();
        } catch (CloneNotSupportedException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Returns both bytes of each char. UTF-8 would encode all lone surrogates alike. */
    private static byte[] bytes(String text) {
        byte[] bytes = new byte[2 * text.length()];
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            bytes[2 * i] = (byte) (c >> 8);
            bytes[2 * i + 1] = (byte) c;
        }
        return bytes;
    }
}
