package io.ratelimit.policy;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import io.ratelimit.policy.RateLimitProperties.GuaranteedShare;
import io.ratelimit.policy.RateLimitProperties.MaxWait;
import io.ratelimit.policy.RateLimitProperties.NamedShare;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads the guaranteed shares of a policy, and checks that the policy can have them.
 *
 * @param property the path of the policy
 * @param backend the place of the bucket; null for a store of the application
 * @param byTransaction whether Redis has no scripts
 */
record ShareReader(String property, Policy policy, @Nullable BackendKind backend, boolean byTransaction) {

    ThrottlePolicy read(ThrottlePolicy read) {
        GuaranteedShare guaranteed = policy.guaranteed();
        if (guaranteed == null && policy.shares().isEmpty()) {
            return read;
        }
        checkNeighbours();
        return guaranteed != null ? with(read, guaranteed) : with(read, policy.shares());
    }

    private String name() {
        return policy.guaranteed() != null ? "guaranteed" : "shares";
    }

    private RateLimitConfigurationException mistake(String description, String action) {
        return new RateLimitConfigurationException(description, action, property + "." + name());
    }

    /** Shares divide one bucket that is decided on its own. */
    private void checkNeighbours() {
        Map<String, Boolean> excluded = new LinkedHashMap<>();
        excluded.put("shares", policy.guaranteed() != null && !policy.shares().isEmpty());
        excluded.put("tier", policy.guaranteed() != null && policy.tier() != null);
        excluded.put("key", !policy.key().isEmpty());
        excluded.put("on-missing-key", policy.onMissingKey() != MissingKey.CLIENT_IP);
        excluded.put("tiers", !policy.tiers().isEmpty());
        excluded.put("limit", policy.limit() != null);
        excluded.put(
                "lease", policy.lease() != null && !policy.lease().duration().isZero());
        excluded.put("refill", policy.refill() != Refill.GREEDY);
        excluded.forEach((other, isWritten) -> {
            if (isWritten) {
                throw mistake(
                        "'" + property + "' has '" + name() + "' and '" + other
                                + "': shares divide one bucket, which refills continuously.",
                        "Remove '" + other + "', or define a second policy with it"
                                + (other.equals("key") ? ". The key of a share is 'guaranteed.key'." : "."));
            }
        });
        if (policy.rate() == null) {
            throw mistake(
                    "'" + property + "' has '" + name() + "' but no rate: there is nothing to share.",
                    "Set '" + property + ".rate', for example to 1000/s.");
        }
        if (backend == BackendKind.JDBC || backend == BackendKind.REDIS && byTransaction) {
            throw mistake(
                    "'" + property + "' has '" + name() + "', which "
                            + (backend == BackendKind.JDBC ? "a database" : "the strategy 'transaction'")
                            + " doesn't support.",
                    "Set '" + property + ".backend: " + (byTransaction ? "local'" : "redis' or 'local'")
                            + (backend == BackendKind.REDIS ? ", or 'ratelimit.redis.strategy: script'." : "."));
        }
    }

    private ThrottlePolicy with(ThrottlePolicy read, GuaranteedShare share) {
        String at = property + ".guaranteed";
        Integer keys = share.keys();
        if (share.key().isEmpty()) {
            throw mistake(
                    "'" + at + "' has no key.",
                    "Name what has a share, for example '" + at + ".key: path-variable:tenant'.");
        }
        BucketSpec lane = lane(share.rate(), share.capacity(), at, ".rate");
        if (keys == null) {
            throw mistake(
                    "'" + at + "' has no number of keys.",
                    "Set how many keys have a share at a time, for example '" + at + ".for: " + fitting(read, lane)
                            + "'.");
        }
        return PolicyReader.valid(
                at, lane, () -> read.withShares(Shares.forKeys(lane, keys, KeyPart.names(share.key()))));
    }

    /** Returns a number of keys, at most 50, whose shares fit into the policy. */
    private static long fitting(ThrottlePolicy read, BucketSpec lane) {
        Rate pool = read.spec().rate();
        Rate each = lane.rate();
        double byRate = (double) pool.tokens()
                / each.tokens()
                * each.period().toNanos()
                / pool.period().toNanos();
        return Math.max(1, (long) Math.min(Math.min(50, byRate), read.spec().capacity() / lane.capacity()));
    }

    private ThrottlePolicy with(ThrottlePolicy read, Map<String, NamedShare> shares) {
        PolicyNames.checkTwins("share", "shares", property + ".shares.", shares.keySet());
        Map<String, BucketSpec> guaranteed = new LinkedHashMap<>();
        Map<String, Integer> leave = new LinkedHashMap<>();
        shares.forEach((name, share) -> {
            String at = property + ".shares." + name;
            if (!ThrottlePolicy.isName(name)) {
                throw mistake(
                        "'" + name
                                + "' can't be the name of a share: a name has at most 64 lower-case letters, digits and dashes.",
                        "Rename '" + at + "', for example to 'checkout'.");
            }
            if ((share.leave() == null) == (share.guaranteed() == null)
                    || share.leave() != null && share.capacity() != null) {
                throw mistake(
                        "'" + at
                                + "' must have either 'guaranteed', a rate and a capacity that others can't take, or 'leave'.",
                        "Write '" + at + ": { guaranteed: 100/s, capacity: 50 }' or '" + at + ": { leave: 30% }'.");
            }
            if (share.leave() == null) {
                guaranteed.put(name, lane(share.guaranteed(), share.capacity(), at, ".guaranteed"));
            } else {
                leave.put(name, share.leave().percent());
            }
        });
        ThrottlePolicy divided = PolicyReader.valid(
                property + ".shares", shares.keySet(), () -> read.withShares(Shares.named(guaranteed, leave)));
        MaxWait maxWait = policy.maxWait();
        if (guaranteed.isEmpty() && maxWait != null && !maxWait.duration().isZero()) {
            throw mistake(
                    "'" + property + "' has a max-wait but no guaranteed share, so no request waits.",
                    "Remove '" + property + ".max-wait', or guarantee a share to the requests that may wait.");
        }
        return PolicyReader.valid(property + ".shares", shares.keySet(), () -> {
            checkLeft(divided, ConfiguredPolicy.cost(policy).minTokens());
            return divided;
        });
    }

    /** @throws IllegalArgumentException if requests of a share that leaves a percentage could never take the cost */
    static void checkLeft(ThrottlePolicy policy, long cost) {
        Shares shares = policy.shares();
        if (shares == null) {
            return;
        }
        long capacity = policy.spec().capacity();
        String property = RateLimitProperties.property(policy.name());
        shares.leave().forEach((name, percent) -> {
            long left = capacity - Math.max(shares.reserve(), (capacity * percent + 99) / 100);
            if (left < cost) {
                throw new IllegalArgumentException("The requests of '" + name + "' can take at most " + left
                        + " of the capacity of '" + policy.name() + "', " + capacity + ", but cost " + cost
                        + ": none could ever be allowed: raise '" + property + ".capacity', or lower '" + property
                        + ".shares." + name + ".leave'");
            }
        });
    }

    private BucketSpec lane(@Nullable Rate rate, @Nullable Long capacity, String at, String rateName) {
        if (rate == null) {
            throw mistake(
                    "'" + at + "' has no rate.", "Set what is guaranteed, for example '" + at + rateName + ": 20/s'.");
        }
        long cost = ConfiguredPolicy.cost(policy).minTokens();
        String where = at + (capacity == null ? rateName : ".capacity");
        return PolicyReader.valid(where, capacity == null ? rate : capacity, () -> {
            BucketSpec lane = new BucketSpec(rate, capacity == null ? rate.tokens() : capacity, Refill.GREEDY);
            if (lane.capacity() < cost) {
                throw new IllegalArgumentException("the guaranteed capacity must be at least the cost of the policy, "
                        + cost + ", but was " + lane.capacity() + ": no request could ever use the share: set '" + at
                        + ".capacity: " + cost + "'");
            }
            return lane;
        });
    }
}
