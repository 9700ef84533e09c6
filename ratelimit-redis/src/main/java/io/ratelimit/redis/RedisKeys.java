package io.ratelimit.redis;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
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
 * The Redis keys of buckets: {@code prefix:policy:} and 22 characters of a keyed hash. Their length is the same for all
 * clients and they contain nothing that a client sent. Without the secret they don't show which client they belong to.
 * Thread-safe.
 */
final class RedisKeys {

    /** The key of the hash if there is no secret. It hides nothing that can be guessed. */
    private static final String NO_SECRET = "io.ratelimit";

    private static final String ALGORITHM = "HmacSHA256";
    private static final int HASH_BYTES = 16;
    private static final int SPARE_MACS = 64;

    private final String prefix;
    private final Mac mac;
    private final AtomicReferenceArray<Mac> spare = new AtomicReferenceArray<>(SPARE_MACS);
    private final Map<String, byte[]> policyPrefixes = new ConcurrentHashMap<>();
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

    /** Returns the Redis key of the bucket of a charge. */
    byte[] key(Charge charge) {
        String name = charge.policy().name();
        if (charge.spec().refill() == Refill.CALENDAR) {
            name += "@" + CalendarClock.of(charge.spec()).unit(); // the time in such a value is that of another clock
        }
        return key(charge.share() == null ? name : taggedName(charge), charge.key());
    }

    /** Returns the Redis key of the lanes of a charge's policy. */
    byte[] lanes(Charge charge) {
        return key(taggedName(charge), "lanes");
    }

    /** Returns a name for which a cluster keeps all keys in one slot: one script call uses the pool and its lanes. */
    private static String taggedName(Charge charge) {
        return "{" + charge.policy().name() + "}";
    }

    /** Returns the name of a key within a Redis key or a value. */
    byte[] hashed(String bucketKey) {
        return encoder.encode(hash(bucketKey));
    }

    /** Returns the Redis key of a bucket whose value has the form of {@link CompareAndSetBucketStore}. */
    byte[] key(BucketName bucket) {
        return key(bucket.policy() + "@tx", bucket.key());
    }

    /** Returns the Redis key of the registers of calls in flight. */
    byte[] slots(BucketName bucket) {
        return key(bucket.policy() + "@slots", bucket.key());
    }

    private byte[] key(String name, String bucketKey) {
        byte[] policyPrefix = policyPrefixes.get(name);
        if (policyPrefix == null) {
            policyPrefix = (prefix + ":" + name + ":").getBytes(StandardCharsets.UTF_8);
            policyPrefixes.put(name, policyPrefix);
        }
        byte[] hash = hashed(bucketKey);
        byte[] key = Arrays.copyOf(policyPrefix, policyPrefix.length + hash.length);
        System.arraycopy(hash, 0, key, policyPrefix.length, hash.length);
        return key;
    }

    private byte[] hash(String key) {
        int slot = (int) Thread.currentThread().getId() & (SPARE_MACS - 1);
        Mac spareMac = spare.getAndSet(slot, null);
        Mac mac = spareMac != null ? spareMac : copy();
        byte[] hash = mac.doFinal(bytes(key));
        spare.set(slot, mac);
        return Arrays.copyOf(hash, HASH_BYTES);
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
