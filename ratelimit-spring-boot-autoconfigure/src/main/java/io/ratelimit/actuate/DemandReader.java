package io.ratelimit.actuate;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.actuate.Descriptors.KeyDescriptor;
import io.ratelimit.actuate.Descriptors.LimitDescriptor;
import io.ratelimit.actuate.PolicyDemandDescriptor.CapacityDescriptor;
import io.ratelimit.actuate.PolicyDemandDescriptor.CurveDescriptor;
import io.ratelimit.actuate.PolicyDemandDescriptor.DemandDescriptor;
import io.ratelimit.actuate.PolicyDemandDescriptor.HeavyKeyDescriptor;
import io.ratelimit.actuate.PolicyDemandDescriptor.SuggestionDescriptor;
import io.ratelimit.actuate.PolicyDemandDescriptor.TouchedDescriptor;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Quantile;
import io.ratelimit.demand.Demand.Suggestion;
import io.ratelimit.demand.Demand.Touched;
import io.ratelimit.demand.DemandListener;
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

/**
 * Reads the demand of policies.
 *
 * @param refunds whether a policy gives tokens back
 */
record DemandReader(DemandListener listener, Predicate<ThrottlePolicy> refunds) {

    private static final Map<String, Double> SHARES = new LinkedHashMap<>();

    static {
        SHARES.put("p50", 0.5);
        SHARES.put("p90", 0.9);
        SHARES.put("p99", 0.99);
        SHARES.put("p99.9", 0.999);
        SHARES.put("max", 1.0);
    }

    /**
     * @param touch the share of keys that the suggested limit may touch
     * @param within the time over which harm adds up
     * @param showKeys whether to include the texts of keys
     */
    PolicyDemandDescriptor read(ThrottlePolicy policy, double touch, Duration within, boolean showKeys) {
        Function<@Nullable String, DemandDescriptor> demand = tier -> describe(
                Objects.requireNonNull(listener.demand(policy.name(), tier)),
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
        if (refunds.test(policy)) {
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
            Demand demand, double touch, Duration within, Function<String, KeyDescriptor> keys) {
        Suggestion suggestion = demand.suggest(touch, within);
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
                suggestion == null && demand.sample() > 0
                        ? "each limit for this share takes longer from empty to full than the measured time"
                        : null,
                demand.hours(),
                demand.heaviest().stream()
                        .map(heavy ->
                                new HeavyKeyDescriptor(keys.apply(heavy.key()), heavy.requests(), up(heavy.capacity())))
                        .toList());
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
}
