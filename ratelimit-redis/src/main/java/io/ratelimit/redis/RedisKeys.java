package io.ratelimit.redis;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.CalendarClock;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.remote.KeyHash;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The Redis keys of buckets: {@code prefix:policy:} and 22 characters of a keyed hash. Their length is the same for all
 * clients and they contain nothing that a client sent. Without the secret they don't show which client they belong to.
 * Thread-safe.
 */
final class RedisKeys {

    private final String prefix;
    private final KeyHash hash;
    private final Map<String, byte[]> policyPrefixes = new ConcurrentHashMap<>();
    private final Base64.Encoder encoder = Base64.getUrlEncoder().withoutPadding();

    /**
     * @param secret the key of the hash; empty for none
     */
    RedisKeys(String prefix, String secret) {
        this.prefix = prefix;
        this.hash = new KeyHash(secret);
    }

    byte[] key(Charge charge) {
        String name = charge.policy().name();
        if (charge.spec().refill() == Refill.CALENDAR) {
            name += "@" + CalendarClock.of(charge.spec()).unit(); // the time in such a value is that of another clock
        }
        return key(charge.share() == null ? name : taggedName(charge), charge.key());
    }

    byte[] lanes(Charge charge) {
        return key(taggedName(charge), "lanes");
    }

    /** Returns a name for which a cluster keeps all keys in one slot: one script call uses the pool and its lanes. */
    private static String taggedName(Charge charge) {
        return "{" + charge.policy().name() + "}";
    }

    /** Returns the name of a key within a Redis key or a value. */
    byte[] hashed(String bucketKey) {
        return encoder.encode(hash.of(bucketKey));
    }

    /** Returns the Redis key of a bucket whose value has the form of {@link CompareAndSetBucketStore}. */
    byte[] key(BucketName bucket) {
        return key(bucket.policy() + "@tx", bucket.key());
    }

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
}
