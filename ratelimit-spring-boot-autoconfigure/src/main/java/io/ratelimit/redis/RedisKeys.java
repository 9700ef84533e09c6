package io.ratelimit.redis;

import io.ratelimit.Charge;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReferenceArray;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The keys that buckets have in Redis: {@code prefix:policy:} and 22 characters of a keyed hash. They are as long for
 * each key, no byte of a client's is in them, and without the secret nobody can tell whose they are. Thread-safe.
 */
final class RedisKeys {

    /** Without a secret: it hides nothing that can be guessed. */
    private static final String NO_SECRET = "io.ratelimit";

    private static final String ALGORITHM = "HmacSHA256";
    private static final int HASH_BYTES = 16;
    private static final int SPARE_MACS = 64;

    private final String prefix;
    private final Mac mac;
    private final AtomicReferenceArray<Mac> spare = new AtomicReferenceArray<>(SPARE_MACS);
    private final Map<String, byte[]> beginnings = new ConcurrentHashMap<>();
    private final Base64.Encoder encoder = Base64.getUrlEncoder().withoutPadding();

    /**
     * @param secret the key of the hash; empty for none
     */
    RedisKeys(String prefix, String secret) {
        this.prefix = prefix;
        String key = secret.isEmpty() ? NO_SECRET : secret;
        try {
            this.mac = Mac.getInstance(ALGORITHM);
            this.mac.init(new SecretKeySpec(key.getBytes(StandardCharsets.UTF_8), ALGORITHM));
            this.mac.clone();
        } catch (GeneralSecurityException | CloneNotSupportedException missing) {
            throw new IllegalStateException("this JVM has no " + ALGORITHM + " that can be copied", missing);
        }
    }

    /** The key of a charge's bucket. */
    byte[] of(Charge charge) {
        byte[] beginning = beginnings.get(charge.policy().name());
        if (beginning == null) {
            String text = prefix + ":" + charge.policy().name() + ":";
            beginning = text.getBytes(StandardCharsets.UTF_8);
            beginnings.put(charge.policy().name(), beginning);
        }
        byte[] hash = encoder.encode(hash(charge.key()));
        byte[] key = Arrays.copyOf(beginning, beginning.length + hash.length);
        System.arraycopy(hash, 0, key, beginning.length, hash.length);
        return key;
    }

    private byte[] hash(String key) {
        int slot = (int) Thread.currentThread().getId() & (SPARE_MACS - 1);
        Mac found = spare.getAndSet(slot, null);
        Mac own = found != null ? found : copy();
        byte[] hash = own.doFinal(bytes(key));
        spare.set(slot, own);
        return Arrays.copyOf(hash, HASH_BYTES);
    }

    /** To set one up costs several times as much as to use it, and a thread may be a virtual one. */
    private Mac copy() {
        try {
            return (Mac) mac.clone();
        } catch (CloneNotSupportedException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Both bytes of each char: UTF-8 would make one of all halves of surrogate pairs. */
    private static byte[] bytes(String key) {
        byte[] bytes = new byte[2 * key.length()];
        for (int i = 0; i < key.length(); i++) {
            char c = key.charAt(i);
            bytes[2 * i] = (byte) (c >> 8);
            bytes[2 * i + 1] = (byte) c;
        }
        return bytes;
    }
}
