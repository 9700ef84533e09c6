package io.ratelimit.actuate;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.actuate.Descriptors.KeyDescriptor;
import io.ratelimit.actuate.Descriptors.LimitDescriptor;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Hour;
import io.ratelimit.demand.Demand.Quantile;
import io.ratelimit.demand.Demand.Suggestion;
import io.ratelimit.demand.Demand.Touched;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.ConfiguredPolicies;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * Reads the demand of policies.
 *
 * @param oneBucket whether all calls of a policy share one bucket
 */
record DemandReader(DemandListener listener, ConfiguredPolicies policies, Predicate<ThrottlePolicy> oneBucket) {

    private static final Map<String, Double> SHARES = new LinkedHashMap<>();

    static {
        SHARES.put("p50", 0.5);
        SHARES.put("p90", 0.9);
        SHARES.put("p99", 0.99);
        SHARES.put("p99.9", 0.999);
        SHARES.put("max", 1.0);
    }

    PolicyDemandDescriptor read(ThrottlePolicy policy, double touch, Duration within, boolean showKeys) {
        if (listener.demand(policy.name(), null) == null) {
            throw new RateLimitsProblems.NotFoundException(
                    "demand is not measured, because the application's Throttlers don't call the DemandListener");
        }
        Function<@Nullable String, DemandDescriptor> demand = tier -> describe(
                Objects.requireNonNull(listener.demand(policy.name(), tier)),
                oneBucket.test(policy),
                touch,
                within,
                key -> KeyDescriptor.of(policy, key, showKeys));
        Map<String, DemandDescriptor> tiers = new TreeMap<>();
        policy.tiers().keySet().forEach(tier -> tiers.put(tier, demand.apply(tier)));
        return new PolicyDemandDescriptor(
                policy.name(), Descriptors.text(policy.mode()), policy.key(), note(policy), demand.apply(null), tiers);
    }

    private @Nullable String note(ThrottlePolicy policy) {
        List<String> notes = new ArrayList<>();
        if (policy.mode() != Mode.SHADOW) {
            notes.add("where a policy is enforced, clients may send fewer requests, or retry;"
                    + " shadow mode has no such effect");
        }
        if (policies.refunds(policy)) {
            notes.add("this policy gives tokens back (refund-on), and the demand counts them as used:"
                    + " capacities, touched keys and denied requests are upper bounds");
        }
        if (policy.spec().refill() == Refill.CALENDAR) {
            notes.add("the rates and the suggested limits are for 'refill: greedy', without a zone;"
                    + " with the refill of a calendar, they deny more");
        }
        return notes.isEmpty() ? null : String.join("; ", notes);
    }

    private static DemandDescriptor describe(
            Demand demand, boolean global, double touch, Duration within, Function<String, KeyDescriptor> keys) {
        Suggestion suggestion = demand.isTooLittle(global) ? null : demand.suggest(touch, within);
        return new DemandDescriptor(
                LimitDescriptor.of(demand.spec()),
                demand.keys(),
                demand.sample(),
                Math.round(demand.requests()),
                demand.measured().toMillis(),
                touched(demand.touched()),
                IntStream.range(0, demand.rates().size())
                        .mapToObj(rate -> curve(demand, rate))
                        .toList(),
                suggestion == null
                        ? null
                        : new SuggestionDescriptor(
                                suggestion.spec().rate().toString(),
                                suggestion.spec().capacity(),
                                Descriptors.text(suggestion.spec().refill()),
                                new TouchedDescriptor(
                                        suggestion.touched().keys(),
                                        suggestion.touched().share(),
                                        suggestion.atLeast(),
                                        suggestion.atMost(),
                                        null,
                                        suggestion.touched().requests()),
                                suggestion.outermost()),
                suggestion == null && demand.sample() > 0 ? whyNone(demand, global) : null,
                demand.hours(),
                demand.heaviest().stream()
                        .map(heavy ->
                                new HeavyKeyDescriptor(keys.apply(heavy.key()), heavy.requests(), up(heavy.capacity())))
                        .toList());
    }

    private static String whyNone(Demand demand, boolean global) {
        if (demand.isTooLittle(global)) {
            return "too little traffic yet: a limit is suggested after ten minutes"
                    + (global ? "" : " with requests of at least 30 keys");
        }
        return "each limit for this share takes longer from empty to full than the measured time";
    }

    private static TouchedDescriptor touched(Touched touched) {
        return new TouchedDescriptor(
                touched.keys(), touched.share(), touched.atLeast(), touched.atMost(), touched.requests(), null);
    }

    private static CurveDescriptor curve(Demand demand, int rate) {
        Map<String, CapacityDescriptor> capacities = new LinkedHashMap<>();
        SHARES.forEach((name, share) -> {
            Quantile quantile = demand.quantile(rate, share);
            capacities.put(
                    name,
                    new CapacityDescriptor(
                            up(quantile.capacity()),
                            up(quantile.atLeast()),
                            Double.isInfinite(quantile.atMost()) ? null : (Long) up(quantile.atMost())));
        });
        return new CurveDescriptor(demand.rates().get(rate).toString(), capacities);
    }

    private static long up(double capacity) {
        return (long) Math.ceil(capacity);
    }

    /**
     * @param note the reasons why the demand may differ from that without a limit, or with it; null if there are none
     * @param demand the demand of the keys without a tier
     */
    record PolicyDemandDescriptor(
            String policy,
            String mode,
            List<String> key,
            @Nullable String note,
            DemandDescriptor demand,
            Map<String, DemandDescriptor> tiers)
            implements OperationResponseBody {}

    /**
     * @param keys the number of keys, estimated if they are more than the sample
     * @param requests the number of requests, estimated
     * @param measuredMs the milliseconds from the first to the last request, of at most two weeks
     * @param curves the needed capacities at each measured rate, the lowest rate first
     * @param suggestion the tightest limit for the requested share and time, among those that take at most the measured
     *     time from empty to full; null if there is none
     * @param noSuggestion the reason why there is none; null if there are no keys
     * @param hours the last hours, the latest first
     * @param heaviest the keys that send the most requests; empty while the sample has all keys
     */
    record DemandDescriptor(
            LimitDescriptor limit,
            long keys,
            int sample,
            long requests,
            long measuredMs,
            TouchedDescriptor touched,
            List<CurveDescriptor> curves,
            @Nullable SuggestionDescriptor suggestion,
            @Nullable String noSuggestion,
            List<Hour> hours,
            List<HeavyKeyDescriptor> heaviest) {}

    /**
     * @param keys the touched keys of the sample
     * @param share their share of the sample
     * @param atLeast the lower bound of the share of all keys, at a confidence of 95 %
     * @param requests the share of the requests that the present limit denies; null for another limit
     * @param requestsAtMost the upper bound of the share of the requests that another limit denies; null for the present one
     */
    record TouchedDescriptor(
            int keys,
            double share,
            double atLeast,
            double atMost,
            @Nullable Double requests,
            @Nullable Double requestsAtMost) {}

    /** @param capacities the capacities by share: p50, p90, p99, p99.9 and max */
    record CurveDescriptor(String rate, Map<String, CapacityDescriptor> capacities) {}

    /**
     * @param atLeast the lower bound for all keys, at a confidence of 95 %
     * @param atMost the upper bound; null if the sample is too small for one
     */
    record CapacityDescriptor(
            long capacity, long atLeast, @Nullable Long atMost) {}

    /**
     * @param outermost whether the rate is the lowest or the highest that is measured, so that a rate beyond may fit better
     */
    record SuggestionDescriptor(
            String rate, long capacity, String refill, TouchedDescriptor touched, boolean outermost) {}

    /**
     * @param requests the lower bound of the number of its requests, estimated
     * @param capacity the capacity that it needs at the present rate
     */
    record HeavyKeyDescriptor(KeyDescriptor key, long requests, long capacity) {}
}
