package io.ratelimit;

import static io.ratelimit.Check.check;

import io.ratelimit.Charge.Share;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The guaranteed shares of a policy: the parts of one limit that other calls can't take. Immutable. All calls use the
 * policy's one bucket, the pool, as long as it has tokens beyond the reserve: the sum of the guaranteed capacities. The
 * rest serves only calls with a guaranteed share, each from a small bucket of its own, its lane, and the pool pays too.
 * The bound of the pool therefore holds for all calls together.
 */
public final class Shares {

    /** The most keys that may have a guaranteed share at a time. */
    public static final int MAX_KEYS = 10_000;

    private final List<String> key;
    private final @Nullable BucketSpec each;
    private final int keys;
    private final Map<String, BucketSpec> guaranteed;
    private final Map<String, Integer> leave;
    private final long reserve;

    private Shares(
            List<String> key,
            @Nullable BucketSpec each,
            int keys,
            Map<String, BucketSpec> guaranteed,
            Map<String, Integer> leave) {
        this.key = List.copyOf(key);
        this.each = each;
        this.keys = keys;
        this.guaranteed = Map.copyOf(guaranteed);
        this.leave = Map.copyOf(leave);
        this.guaranteed.forEach((name, lane) -> checkLane(lane));
        this.leave
                .values()
                .forEach(percent -> check(percent >= 1 && percent <= 99, "leave", "1% to 99%", percent + "%"));
        this.reserve = lanesBySpec().entrySet().stream()
                .mapToLong(lanes -> Math.multiplyExact(lanes.getKey().capacity(), lanes.getValue()))
                .sum();
    }

    /**
     * Returns shares of the same size, each guaranteed to one key.
     *
     * @param lane the rate and the capacity that are guaranteed to a key
     * @param keys the most keys that have a share at a time; others only use what all share. A key whose share is full
     *     makes room for another one
     * @param key the names of the key's parts, such as {@code path-variable:tenant}
     * @throws IllegalArgumentException if the number is not from 1 to 10,000, or the lane has another refill than greedy
     */
    public static Shares forKeys(BucketSpec lane, int keys, List<String> key) {
        checkLane(lane);
        check(keys >= 1 && keys <= MAX_KEYS, "for", "between 1 and " + MAX_KEYS, keys);
        return new Shares(key, lane, keys, Map.of(), Map.of());
    }

    /**
     * Returns shares with names, which a call selects as it would select a tier.
     *
     * @param guaranteed the rate and the capacity that are guaranteed to each name
     * @param leave the percentage of the capacity that calls of a name have to leave
     * @throws IllegalArgumentException if a percentage is not from 1 to 99, or a lane has another refill than greedy
     */
    public static Shares named(Map<String, BucketSpec> guaranteed, Map<String, Integer> leave) {
        return new Shares(List.of(), null, guaranteed.size(), guaranteed, leave);
    }

    private static void checkLane(BucketSpec lane) {
        check(lane.refill() == BucketSpec.Refill.GREEDY, "the refill of a guaranteed share", "greedy", lane.refill());
        check(lane.inFlight() == 0, "a guaranteed share", "a rate", lane);
    }

    /** Returns the names of the parts of the key that selects a share; empty if the shares have names. */
    public List<String> key() {
        return key;
    }

    /** Returns what is guaranteed to each key; null if the shares have names. */
    public @Nullable BucketSpec each() {
        return each;
    }

    /** Returns the most lanes that exist at a time. */
    public int keys() {
        return keys;
    }

    /** Returns what is guaranteed to each name; empty if keys have shares. */
    public Map<String, BucketSpec> guaranteed() {
        return guaranteed;
    }

    /** Returns the percentage of the capacity that calls of a name have to leave, by the names. */
    public Map<String, Integer> leave() {
        return leave;
    }

    /** Returns the names of the shares; empty if keys have shares. */
    public Set<String> names() {
        return Stream.of(guaranteed, leave)
                .flatMap(shares -> shares.keySet().stream())
                .collect(Collectors.toSet());
    }

    /** Returns the tokens that only guaranteed shares may take: the sum of their capacities. */
    public long reserve() {
        return reserve;
    }

    /** Returns what a call without a guaranteed share may use. */
    Share common() {
        return new Share("", null, reserve, keys);
    }

    Share ofKey(String key) {
        return each == null ? common() : new Share(key, each, reserve, keys);
    }

    /** Returns what a call of a name may use, in a pool of this spec. An unknown name has no share. */
    Share ofName(String name, BucketSpec pool) {
        Integer percent = leave.get(name);
        if (percent != null) {
            return new Share("", null, Math.max(reserve, (pool.capacity() * percent + 99) / 100), keys);
        }
        BucketSpec lane = guaranteed.get(name);
        return lane == null ? common() : new Share(name, lane, reserve, keys);
    }

    /**
     * Checks that a policy can have these shares, and that its pool never denies what a lane has.
     *
     * @throws IllegalArgumentException if not; the message contains numbers that would do
     */
    void checkFit(ThrottlePolicy policy) {
        String of = " of a policy with guaranteed shares";
        BucketSpec pool = policy.spec();
        check(policy.isGlobal(), "the key" + of, "none", policy.key());
        check(policy.tiers().isEmpty(), "the tiers" + of, "none", policy.tiers().keySet());
        check(policy.lease().isZero(), "the lease" + of, "0s", policy.lease());
        boolean isGreedy = pool.hasRate() && pool.refill() == BucketSpec.Refill.GREEDY;
        check(isGreedy, "the refill" + of, "greedy", pool.hasRate() ? pool.refill() : "none");
        checkRate(TickScale.of(pool, 0).rate(), policy);
        if (reserve > pool.capacity()) {
            throw tooMuch("capacities", policy, "capacity", pool.capacity(), reserve, "", keys);
        }
    }

    private void checkRate(Rate pool, ThrottlePolicy policy) {
        BigInteger tokens = BigInteger.ZERO; // as a fraction: tokens in so many periods of the pool
        BigInteger periods = BigInteger.ONE;
        for (Map.Entry<BucketSpec, Long> lanes : lanesBySpec().entrySet()) {
            Rate rate = lanes.getKey().rate();
            BigInteger laneTokens = BigInteger.valueOf(rate.tokens())
                    .multiply(nanos(pool))
                    .multiply(BigInteger.valueOf(lanes.getValue()));
            tokens = tokens.multiply(nanos(rate)).add(laneTokens.multiply(periods));
            periods = periods.multiply(nanos(rate));
        }
        BigInteger most = BigInteger.valueOf(pool.tokens()).multiply(periods);
        if (tokens.compareTo(most) > 0) {
            BigInteger perPeriod = tokens.add(periods).subtract(BigInteger.ONE).divide(periods);
            String needed = perPeriod + "/" + Rate.format(pool.period());
            String also = reserve > policy.spec().capacity() ? " and the capacity to " + reserve : "";
            long fitting =
                    most.multiply(BigInteger.valueOf(keys)).divide(tokens).longValueExact();
            throw tooMuch("rates", policy, "rate", pool, needed, also, fitting);
        }
    }

    /**
     * @param also what else must be raised
     * @param fitting how many keys could have these rates or capacities
     */
    private IllegalArgumentException tooMuch(
            String parts, ThrottlePolicy policy, String whole, Object has, Object needed, String also, long fitting) {
        long fewer = each == null ? 0 : Math.min(fitting, policy.spec().capacity() / each.capacity());
        return new IllegalArgumentException(
                "the guaranteed %s of '%s' must be at most its %s, %s, but are %s %s: raise the %s to %s%s, or %s"
                        .formatted(
                                parts,
                                policy.name(),
                                whole,
                                has,
                                needed,
                                each == null ? "together" : "for " + keys + " keys",
                                whole,
                                needed,
                                also,
                                fewer == 0 ? "guarantee less" : "set 'for' to " + fewer));
    }

    /** Returns how many lanes of each spec there may be. */
    private Map<BucketSpec, Long> lanesBySpec() {
        Map<BucketSpec, Long> lanes = new HashMap<>();
        if (each != null) {
            lanes.put(each, (long) keys);
        }
        guaranteed.values().forEach(lane -> lanes.merge(lane, 1L, Long::sum));
        return lanes;
    }

    private static BigInteger nanos(Rate rate) {
        return BigInteger.valueOf(rate.period().toNanos());
    }

    @Override
    public boolean equals(Object other) {
        return this == other || other instanceof Shares shares && components().equals(shares.components());
    }

    @Override
    public int hashCode() {
        return components().hashCode();
    }

    private List<Object> components() {
        return List.of(key, lanesBySpec(), keys, guaranteed, leave);
    }

    /** Returns the shares in words: {@code 20/1s, capacity 20, guaranteed to each of 50 (user)}. */
    @Override
    public String toString() {
        if (each != null) {
            return each + ", guaranteed to each of " + keys + " (" + String.join(", ", key) + ")";
        }
        List<String> shares = new ArrayList<>();
        new TreeMap<>(guaranteed).forEach((name, lane) -> shares.add(name + " " + lane));
        new TreeMap<>(leave).forEach((name, percent) -> shares.add(name + " leaves " + percent + "%"));
        return String.join("; ", shares);
    }
}
