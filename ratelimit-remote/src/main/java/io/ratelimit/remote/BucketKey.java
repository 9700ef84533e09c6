package io.ratelimit.remote;

import io.ratelimit.Charge;

/** The name of a bucket, comparable so that a map finds keys with equal hash codes quickly. */
record BucketKey(String policy, String key) implements Comparable<BucketKey> {

    @Override
    public int compareTo(BucketKey other) {
        int byKey = key.compareTo(other.key);
        return byKey != 0 ? byKey : policy.compareTo(other.policy);
    }

    static BucketKey of(Charge charge) {
        return new BucketKey(charge.policy().name(), charge.key());
    }
}
