package io.ratelimit.policy;

import static java.util.Objects.requireNonNull;
import static java.util.Objects.requireNonNullElse;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import io.ratelimit.RetryJitter;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.OverrideTable;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.BackendProperties.Redis.Strategy;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.MaxWait;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.Tier;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * Reads the properties of one policy into the records of the core, and checks all that doesn't depend on the web. The
 * paths, methods and phase of a policy for requests are read by {@code RequestPolicyReader}.
 *
 * @param property the path of the policy
 * @param backend the place of the buckets; null for a store of the application, which is asked itself what it can do
 */
record PolicyReader(
        String name,
        String property,
        Policy properties,
        RateLimitProperties application,
        @Nullable BackendKind backend) {

    /** The shortest time to full of a bucket, in leases. */
    private static final int MIN_LEASES_TO_FULL = 4;

    /** The smallest capacity of which a lease of a twentieth contains two tokens. */
    private static final int MIN_LEASED_CAPACITY = 40;

    /** @param ownStore whether a store of the application has all buckets, whatever 'backend' is */
    static List<ConfiguredPolicy> read(RateLimitProperties properties, boolean ownStore) {
        List<ConfiguredPolicy> policies = new ArrayList<>();
        int ipv6Prefix = properties.clientIp().ipv6Prefix();
        properties.policies().forEach((name, policy) -> {
            BackendKind backend = ownStore ? null : requireNonNullElse(policy.backend(), properties.backend());
            String property = RateLimitProperties.property(name);
            ThrottlePolicy read = new PolicyReader(name, property, policy, properties, backend).read();
            OverrideTable overrides = new OverrideReader(policy, read, ipv6Prefix).read();
            valid(property + ".lease", read.lease(), () -> {
                checkLease(read, overrides.specs());
                return read;
            });
            policies.add(new ConfiguredPolicy(policy, read, overrides));
        });
        return policies;
    }

    private ThrottlePolicy read() {
        BucketSpec spec = spec();
        checkPlaceOfSlots();
        checkCost(spec.capacity());
        checkStatus();
        List<String> parts = keyParts();
        ThrottlePolicy policy = valid(property, name, () -> ThrottlePolicy.of(name, spec, parts));
        int maxKeys = properties.maxKeys();
        ThrottlePolicy read = valid(property + ".max-keys", maxKeys, () -> policy.withMaxKeys(maxKeys))
                .withTiers(tiers(spec))
                .withIgnoreCase(properties.ignoreCase())
                .withMode(properties.mode().weaker(application.mode()))
                .withRetryJitter(requireNonNullElse(properties.retryJitter(), RetryJitter.NONE));
        boolean byTransaction = application.redis().strategy() == Strategy.TRANSACTION;
        return withLease(withWaiting(new ShareReader(property, properties, backend, byTransaction).read(read)));
    }

    private BucketSpec spec() {
        Rate rate = properties.rate();
        Long capacity = properties.capacity();
        Integer inFlight = properties.inFlight();
        checkZone();
        if (rate == null) {
            if (inFlight == null) {
                throw noRate("throttle policy", name, property);
            }
            checkWithoutRate();
            BucketSpec slots = valid(property + ".in-flight", inFlight, () -> BucketSpec.inFlight(inFlight));
            return properties.refill() == Refill.INTERVAL ? slots.withRefill(Refill.INTERVAL) : slots; // for own limits
        }
        BucketSpec spec = valid(property + ".rate", rate, () -> spec(rate, rate.tokens(), properties));
        BucketSpec sized =
                capacity == null ? spec : valid(property + ".capacity", capacity, () -> spec.withCapacity(capacity));
        return withSlots(sized, inFlight, property);
    }

    private static BucketSpec withSlots(BucketSpec spec, @Nullable Integer inFlight, String at) {
        return inFlight == null ? spec : valid(at + ".in-flight", inFlight, () -> spec.withInFlight(inFlight));
    }

    /** A property of the bucket would have no effect on requests in flight. */
    private void checkWithoutRate() {
        Map<String, Boolean> written = new LinkedHashMap<>();
        written.put("capacity", properties.capacity() != null);
        if (properties.limit() == null && !someHaveRates()) {
            written.put("refill", properties.refill() != Refill.GREEDY);
            written.put("cost", properties.cost() != RequestCost.ONE);
            written.put("max-cost", properties.maxCost() != null);
            written.put("settle", properties.settle() != null);
            written.put("refund-on", !properties.refundOn().isEmpty());
            written.put("max-keys", properties.maxKeys() != ThrottlePolicy.DEFAULT_MAX_KEYS);
            written.put("lease", properties.lease() != null);
        }
        checkUnused(written, "rate", "rate: 600/1m", "'in-flight' takes no tokens.");
        boolean calendar = properties.limit() != null && properties.refill() == Refill.CALENDAR;
        String unused = someHaveRates() ? "limit" : "refill"; // which is that of the tiers too
        checkUnused(
                Map.of(unused, calendar), "rate", "rate: 10000/month", "own limits have the period of its calendar.");
    }

    private void checkUnused(Map<String, Boolean> written, String missing, String example, String reason) {
        written.forEach((unused, isWritten) -> {
            if (isWritten) {
                throw new RateLimitConfigurationException(
                        "The throttle policy '" + name + "' has '" + unused + "' but no " + missing + ": " + reason,
                        "Set the " + missing + ", for example '" + property + "." + example + "', or remove '" + unused
                                + "'.",
                        property + "." + unused);
            }
        });
    }

    private boolean someHaveRates() {
        return properties.tiers().values().stream().anyMatch(tier -> tier.rate() != null)
                || properties.overrides().stream().anyMatch(override -> override.rate() != null);
    }

    /** Without slots in Redis, each instance alone would let as many requests run as the policy allows in all. */
    private void checkPlaceOfSlots() {
        String inFlight = inFlight(property, properties);
        boolean shares = backend == BackendKind.REDIS && application.redis().strategy() != Strategy.TRANSACTION;
        if (inFlight != null && backend != null && backend != BackendKind.LOCAL && !shares) {
            boolean redis = backend == BackendKind.REDIS;
            throw new RateLimitConfigurationException(
                    "The throttle policy '" + name + "' limits the requests in flight, which "
                            + (redis ? "Redis without scripts" : "a database") + " doesn't count.",
                    (redis ? "Set 'ratelimit.redis.strategy: script', or '" : "Use Redis, or set '") + property
                            + ".backend: local': each instance then counts its own requests. For a rate of all"
                            + " instances, use a second policy without 'in-flight'.",
                    inFlight);
        }
    }

    /** Returns the property that limits the requests in flight: the policy's, that of a tier or an override; null for none. */
    static @Nullable String inFlight(String property, Policy policy) {
        List<OverrideEntry> overrides = policy.overrides();
        return Stream.of(
                        Stream.of("").filter(own -> policy.inFlight() != null),
                        policy.tiers().entrySet().stream()
                                .filter(tier -> tier.getValue().inFlight() != null)
                                .map(tier -> ".tiers." + tier.getKey()),
                        IntStream.range(0, overrides.size())
                                .filter(i -> overrides.get(i).inFlight() != null)
                                .mapToObj(i -> ".overrides[" + i + "]"))
                .flatMap(places -> places)
                .findFirst()
                .map(place -> property + place + ".in-flight")
                .orElse(null);
    }

    private static BucketSpec spec(Rate rate, long capacity, Policy policy) {
        ZoneId zone = policy.zone();
        return new BucketSpec(rate, capacity, policy.refill(), zone == null ? ZoneOffset.UTC : zone);
    }

    private void checkZone() {
        if (properties.zone() != null && properties.refill() != Refill.CALENDAR) {
            throw new RateLimitConfigurationException(
                    "The throttle policy '" + name + "' has a zone, but its tokens don't come by the calendar.",
                    "Set '" + property + ".refill: calendar', or remove the zone.",
                    property + ".zone");
        }
    }

    private static RateLimitConfigurationException noRate(String kind, String name, String property) {
        return new RateLimitConfigurationException(
                "The " + kind + " '" + name + "' has no rate.",
                "Set the tokens and the period of the refill, for example '" + property
                        + ".rate: 600/1m'. To limit only how many requests run at a time, set '" + property
                        + ".in-flight: 4'.",
                property);
    }

    private void checkCost(long capacity) {
        Long maxCost = properties.maxCost();
        Long cost = properties.cost().constant();
        if (maxCost != null && (maxCost < 1 || maxCost > capacity)) {
            throw new InvalidConfigurationPropertyValueException(
                    property + ".max-cost",
                    maxCost,
                    "max-cost must be between 1 and the capacity of '" + name + "', " + capacity + ", but was "
                            + maxCost + ": set 'max-cost: " + capacity + "'");
        }
        if (maxCost == null && cost != null && cost > capacity) {
            throw new InvalidConfigurationPropertyValueException(
                    property + ".cost",
                    cost,
                    "cost must be at most the capacity of '" + name + "', " + capacity + ", but was " + cost
                            + ": no request could ever be allowed: set 'cost: " + capacity + "'");
        }
    }

    private void checkStatus() {
        int status = properties.status();
        if (status < 400 || status > 599) {
            throw new InvalidConfigurationPropertyValueException(
                    property + ".status",
                    status,
                    "status must be between 400 and 599, but was " + status
                            + ": clients would take the rejection for a success");
        }
    }

    private List<String> keyParts() {
        List<String> parts = KeyPart.names(properties.key());
        boolean shared = properties.guaranteed() != null || !properties.shares().isEmpty();
        if (parts.isEmpty() && !shared && properties.appliesTo() == AppliesTo.REQUESTS) {
            boolean written = properties.onMissingKey() != MissingKey.CLIENT_IP;
            checkUnused(Map.of("on-missing-key", written), "key", "key: user", "all requests share one bucket.");
        }
        if (Set.copyOf(parts).size() < parts.size()) {
            String twice = parts.stream()
                    .filter(part -> Collections.frequency(parts, part) > 1)
                    .findFirst()
                    .orElseThrow();
            throw new InvalidConfigurationPropertyValueException(
                    property + ".key",
                    String.join(", ", parts),
                    "key must contain each part once, but has '" + twice + "' twice: remove one of them");
        }
        return parts;
    }

    private Map<String, BucketSpec> tiers(BucketSpec base) {
        PolicyNames.checkTwins(
                "tier", "tiers", property + ".tiers.", properties.tiers().keySet());
        Map<String, BucketSpec> specs = new HashMap<>();
        properties
                .tiers()
                .forEach((tier, limit) -> specs.put(tier, tier(tier, limit, base, property + ".tiers." + tier)));
        if (properties.tier() != null
                && specs.isEmpty()
                && properties.shares().isEmpty()
                && properties.guaranteed() == null) {
            throw new RateLimitConfigurationException(
                    "'" + property + ".tier' selects the tier of a request, but the policy has no tiers.",
                    "Add a tier, for example '" + property + ".tiers.pro.rate: 6000/1m', or remove 'tier'.",
                    property + ".tier");
        }
        return specs;
    }

    private BucketSpec tier(String tier, Tier limit, BucketSpec base, String tierProperty) {
        PolicyNames.checkName(
                "tier",
                tier,
                "Rename the tier, for example to 'pro'. Names of roles are compared with it ignoring case.",
                tierProperty);
        if (limit.rate() == null && (limit.inFlight() == null || limit.capacity() != null)) {
            throw noRate("tier", tier, tierProperty);
        }
        return limit(limit.rate(), limit.capacity(), limit.inFlight(), properties, tierProperty, "this tier")
                .orElse(base);
    }

    /**
     * Returns what a tier or an override writes: a rate, the requests in flight, or both.
     *
     * @param at the property that contains the rate, the capacity and the requests in flight
     * @param owner the requests with this spec, such as "this tier"
     * @throws InvalidConfigurationPropertyValueException if the spec can't exist, or could never hold the policy's cost
     */
    static BucketSpec limit(
            @Nullable Rate rate,
            @Nullable Long capacity,
            @Nullable Integer inFlight,
            Policy policy,
            String at,
            String owner) {
        return rate == null && inFlight != null
                ? valid(at + ".in-flight", inFlight, () -> BucketSpec.inFlight(inFlight))
                : withSlots(spec(requireNonNull(rate), capacity, policy, at, owner), inFlight, at);
    }

    private static BucketSpec spec(Rate rate, @Nullable Long capacity, Policy policy, String at, String owner) {
        String where = at + (capacity == null ? ".rate" : ".capacity");
        return valid(where, capacity == null ? rate : capacity, () -> {
            BucketSpec spec = spec(rate, capacity == null ? rate.tokens() : capacity, policy);
            String cost = policy.maxCost() == null ? "cost" : "max-cost";
            long tokens = ConfiguredPolicy.largestCost(policy);
            if (spec.capacity() < tokens) {
                throw new IllegalArgumentException(
                        "capacity must be at least the " + cost + " of the policy, " + tokens + ", but was "
                                + spec.capacity() + ": no request of " + owner
                                + " at this cost could ever be allowed: set '" + at + ".capacity: " + tokens + "'");
            }
            return spec;
        });
    }

    private ThrottlePolicy withWaiting(ThrottlePolicy policy) {
        MaxWait maxWait = properties.maxWait();
        Integer queueLimit = properties.queueLimit();
        boolean unused = maxWait == null && queueLimit != null && properties.appliesTo() == AppliesTo.REQUESTS;
        checkUnused(Map.of("queue-limit", unused), "max-wait", "max-wait: 2s", "no request waits.");
        ThrottlePolicy waiting = maxWait == null ? policy : policy.withMaxWait(maxWait.duration());
        return queueLimit == null
                ? waiting
                : valid(property + ".queue-limit", queueLimit, () -> waiting.withQueueLimit(queueLimit));
    }

    private ThrottlePolicy withLease(ThrottlePolicy policy) {
        if (properties.lease() == null || properties.lease().duration().isZero()) {
            return policy;
        }
        Duration lease = properties.lease().duration();
        if (backend == BackendKind.LOCAL) {
            throw wrongLease(
                    "takes tokens from Redis or a database ahead, but the buckets of the policy are in memory",
                    "set '" + property + ".backend' to redis or jdbc");
        }
        if (policy.spec().refill() == Refill.CALENDAR) {
            throw wrongLease(
                    "lasts for a time of the backend's clock, but with 'refill: calendar' buckets count by days, weeks or months",
                    "set another '" + property + ".refill'");
        }
        if (!policy.maxWait().isZero()) {
            throw wrongLease(
                    "lets an instance decide requests by itself, but requests of the policy may wait, in the order"
                            + " in which they reach the backend",
                    "remove '" + property + ".max-wait'");
        }
        return policy.withLease(lease);
    }

    /** @param action what to do instead of removing the lease */
    private RateLimitConfigurationException wrongLease(String mistake, String action) {
        return new RateLimitConfigurationException(
                "'" + property + ".lease' " + mistake + ".", "Remove 'lease', or " + action + ".", property + ".lease");
    }

    /** @throws IllegalArgumentException if the lease is too long for a limit of the policy, or for one of the overrides */
    static void checkLease(ThrottlePolicy policy, Stream<BucketSpec> overrides) {
        String lease = "'" + RateLimitProperties.property(policy.name()) + ".lease";
        Stream.of(Stream.of(policy.spec()), policy.tiers().values().stream(), overrides)
                .flatMap(specs -> specs.filter(BucketSpec::hasRate))
                .forEach(spec -> {
                    Duration longest = spec.timeToFull().dividedBy(MIN_LEASES_TO_FULL);
                    if (policy.lease().compareTo(longest) > 0) {
                        throw new IllegalArgumentException(lease + "' must be at most a quarter of the time in which a"
                                + " bucket of " + spec + " fills, " + Rate.format(longest) + ", but was "
                                + Rate.format(policy.lease()) + ": the tokens that come back within a lease are missing"
                                + " from bursts: remove 'lease'"
                                + (spec.capacity() < MIN_LEASED_CAPACITY
                                        ? ", since " + spec.capacity() + " tokens are too few for any"
                                        : ", or set " + lease + ": " + Rate.format(suggested(longest)) + "'"));
                    }
                });
    }

    /** Returns a fifth of the longest lease, which costs 5 % of the burst, in whole milliseconds if there are any. */
    private static Duration suggested(Duration longest) {
        Duration fifth = longest.dividedBy(5);
        return fifth.toMillis() > 0 ? Duration.ofMillis(fifth.toMillis()) : longest;
    }

    static <T> T valid(String property, @Nullable Object value, Supplier<T> conversion) {
        try {
            return conversion.get();
        } catch (IllegalArgumentException invalid) {
            throw new InvalidConfigurationPropertyValueException(property, value, invalid.getMessage());
        }
    }
}
