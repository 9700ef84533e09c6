package io.ratelimit.jdbc;

import io.ratelimit.CompareAndSetBucketStore.BucketName;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The ids of rows: a keyed hash of the application's prefix, the policy and the key. They contain nothing that a client sent.
 * Without the secret they don't show which client they belong to. Thread-safe.
 */
final class TableIds {

    static final int BYTES = 16;

    /** The key of the hash if there is no secret. It hides nothing that can be guessed. */
    private static final String NO_SECRET = "io.ratelimit";

    /** The policy of changes for all instances. No policy has this name. */
    private static final String CHANGES = "@changes";

    private static final String ALGORITHM = "HmacSHA256";

    private final String prefix;
    private final SecretKeySpec key;

    /** @param secret the key of the hash; empty for none */
    TableIds(String prefix, String secret) {
        this.prefix = prefix;
        this.key =
                new SecretKeySpec((secret.isEmpty() ? NO_SECRET : secret).getBytes(StandardCharsets.UTF_8), ALGORITHM);
    }

    byte[] of(BucketName bucket) {
        return hash(prefix.length() + ":" + prefix + bucket.policy() + ":" + bucket.key());
    }

    /** Returns the id of the change of a limit. */
    byte[] ofChange(String limit) {
        return of(new BucketName(CHANGES, limit));
    }

    private byte[] hash(String text) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(key);
            return Arrays.copyOf(mac.doFinal(bytes(text)), BYTES);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this JVM has no " + ALGORITHM, missing);
        }
    }

    /** Returns both bytes of each char. UTF-8 would encode all lone surrogates alike. */
    private static byte[] bytes(String text) {
        byte[] bytes = new byte[2 * text.length()];
        for (int i = 0; i < text.length(); i++) {
            bytes[2 * i] = (byte) (text.charAt(i) >> 8);
            bytes[2 * i + 1] = (byte) text.charAt(i);
        }
        return bytes;
    }
}
