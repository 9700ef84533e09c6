package io.ratelimit.actuate;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Suggestion;
import io.ratelimit.demand.Demand.Touched;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.ConfiguredPolicies;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The demand that the dashboard's page reads.
 *
 * @param policies for each policy that isn't off its limits: its own, then those of its tiers
 */
record DemandData(Map<String, List<LimitDemand>> policies) {

    /** The shares of the keys whose capacities are lines of the chart. */
    private static final double[] SHARES = {0.5, 0.9, 0.99, 0.999, 1};

    /** The shares of the keys that a suggested limit may touch: it is for all, 99.9, 99, 95 and 90 %. */
    private static final double[] TOUCHED = {0, 0.001, 0.01, 0.05, 0.1};

    private static final Duration WITHIN = Duration.ofMinutes(1);
    private static final int MAX_STEPS = 80;

    static DemandData of(
            Throttlers throttlers,
            DemandListener listener,
            ConfiguredPolicies policies,
            Predicate<ThrottlePolicy> oneBucket) {
        Map<String, List<LimitDemand>> limits = new LinkedHashMap<>();
        throttlers.all().stream()
                .map(PolicyThrottler::policy)
                .filter(policy -> policy.mode() != ThrottlePolicy.Mode.OFF
                        && policy.spec().hasRate()
                        && listener.demand(policy.name(), null) != null)
                .forEach(policy -> limits.put(
                        policy.name(),
                        Stream.concat(
                                        Stream.of((String) null),
                                        new TreeSet<>(policy.tiers().keySet()).stream())
                                .map(tier -> LimitDemand.of(
                                        tier,
                                        policy,
                                        oneBucket.test(policy),
                                        policies.refunds(policy),
                                        Objects.requireNonNull(listener.demand(policy.name(), tier))))
                                .toList()));
        return new DemandData(limits);
    }

    /**
     * @param tier null for the keys without a tier
     * @param own the index of the present rate in {@code rates}
     * @param keys the number of keys, estimated if they are more than the sample
     * @param measuredSeconds the whole seconds from the first to the last request
     * @param global whether all requests have one key
     * @param refunds whether the policy gives tokens back, which the demand counts as used
     * @param calendar whether the limit's refill is that of a calendar; the rates and suggestions are for greedy refill
     * @param suggestions the tightest limits for 100, 99.9, 99, 95 and 90 % of the keys; null where there is none
     */
    record LimitDemand(
            @Nullable String tier,
            long capacity,
            int own,
            long keys,
            int sample,
            long measuredSeconds,
            boolean global,
            boolean refunds,
            boolean calendar,
            boolean tooLittle,
            List<RateDemand> rates,
            List<@Nullable LimitData> suggestions) {

        static LimitDemand of(
                @Nullable String tier, ThrottlePolicy policy, boolean global, boolean refunds, Demand demand) {
            boolean tooLittle = demand.isTooLittle(global);
            return new LimitDemand(
                    tier,
                    demand.spec().capacity(),
                    demand.ownRate(),
                    demand.keys(),
                    demand.sample(),
                    demand.measured().toSeconds(),
                    global,
                    refunds,
                    policy.spec().refill() == Refill.CALENDAR,
                    tooLittle,
                    IntStream.range(0, demand.rates().size())
                            .mapToObj(rate -> RateDemand.of(demand, rate))
                            .toList(),
                    DoubleStream.of(TOUCHED)
                            .mapToObj(touch -> tooLittle ? null : suggestion(demand, touch))
                            .toList());
        }

        private static @Nullable LimitData suggestion(Demand demand, double touch) {
            Suggestion suggestion = demand.suggest(touch, WITHIN);
            return suggestion == null
                    ? null
                    : new LimitData(
                            demand.rates().indexOf(suggestion.spec().rate()),
                            suggestion.spec().capacity(),
                            suggestion.outermost());
        }
    }

    /** A limit: the index of its rate, its capacity, and whether the rate is the lowest or the highest measured one. */
    record LimitData(int rate, long capacity, boolean outermost) {}

    /**
     * @param quantiles the capacities that 50, 90, 99, 99.9 and 100 % of the keys need
     * @param steps for ascending capacities, among them the present one: the capacity, the keys of the sample that need
     *     more, and an upper bound of the share of the requests that it denies; exact for the present limit
     */
    record RateDemand(String rate, double perSecond, long[] quantiles, List<double[]> steps) {

        static RateDemand of(Demand demand, int index) {
            Rate rate = demand.rates().get(index);
            long[] quantiles = DoubleStream.of(SHARES)
                    .mapToLong(share -> (long) Math.ceil(demand.capacity(index, share)))
                    .toArray();
            return new RateDemand(
                    rate.toString(), rate.tokens() * 1e9 / rate.period().toNanos(), quantiles, steps(demand, index));
        }

        /** Returns one step for each capacity that a key needs; of many, every second, third and so on, and the present. */
        private static List<double[]> steps(Demand demand, int index) {
            long[] capacities = DoubleStream.of(demand.needed(index))
                    .mapToLong(needed -> (long) Math.ceil(needed))
                    .distinct()
                    .toArray();
            int stride = (capacities.length - 1) / MAX_STEPS + 1;
            List<double[]> steps = new ArrayList<>();
            for (int i = (capacities.length - 1) % stride; i >= 0 && i < capacities.length; i += stride) {
                steps.add(step(demand, index, capacities[i]));
            }
            steps.add(step(demand, index, demand.spec().capacity()));
            steps.sort(Comparator.comparingDouble(step -> step[0]));
            return steps;
        }

        private static double[] step(Demand demand, int index, long capacity) {
            Touched touched = demand.touched(index, capacity);
            return new double[] {capacity, touched.keys(), touched.requests()};
        }
    }
}
