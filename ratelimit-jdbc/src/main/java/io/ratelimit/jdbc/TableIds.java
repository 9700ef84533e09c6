package io.ratelimit.jdbc;

import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.remote.KeyHash;

/**
 * The ids of rows: a keyed hash of the application's prefix, the policy and the key. They contain nothing that a client sent.
 * Thread-safe.
 */
final class TableIds {

    /** The policy of changes for all instances. No policy has this name. */
    private static final String CHANGES = "@changes";

    private final String prefix;
    private final KeyHash hash;

    /** @param secret the key of the hash; empty for none */
    TableIds(String prefix, String secret) {
        this.prefix = prefix.length() + ":" + prefix;
        this.hash = new KeyHash(secret);
    }

    byte[] of(BucketName bucket) {
        return hash.of(prefix + bucket.policy() + ":" + bucket.key());
    }

    byte[] ofChange(String limit) {
        return of(new BucketName(CHANGES, limit));
    }
}
