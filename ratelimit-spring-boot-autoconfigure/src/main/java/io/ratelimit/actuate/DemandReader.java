package io.ratelimit.actuate;

import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.actuate.RateLimitsEndpoint.CapacityDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.CurveDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.DemandDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.HeavyKeyDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.HourDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.KeyDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.LimitDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.PolicyDemandDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.SuggestionDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.TouchedDescriptor;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.Demand.Quantile;
import io.ratelimit.demand.Demand.Suggestion;
import io.ratelimit.demand.Demand.Touched;
import io.ratelimit.demand.DemandListener;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Reads the demand of policies.
 *
 * @param touch the share of keys that the suggested limit may touch
 * @param within the time over which harm adds up
 */
record DemandReader(DemandListener listener, double touch, Duration within) {

    private static final Map<String, Double> SHARES = new LinkedHashMap<>();
    private static final Duration MAX_WITHIN = Duration.ofDays(30);
    private static final int MAX_LENGTH = 32;

    static {
        SHARES.put("p50", 0.5);
        SHARES.put("p90", 0.9);
        SHARES.put("p99", 0.99);
        SHARES.put("p99.9", 0.999);
        SHARES.put("max", 1.0);
    }

    /** @throws IllegalArgumentException if the text is not a share from 0 % to 50 % */
    static double touch(@Nullable String text) {
        if (text == null) {
            return 0.001;
        }
        boolean percent = text.endsWith("%");
        try {
            String number = percent ? text.substring(0, text.length() - 1).strip() : text;
            double share = Double.parseDouble(number) / (percent ? 100 : 1);
            if (text.length() <= MAX_LENGTH && share >= 0 && share <= 0.5) {
                return share;
            }
        } catch (NumberFormatException notANumber) {
            // The requirement is the same.
        }
        throw new IllegalArgumentException(
                "touch must be a share from 0% to 50%, such as 'touch=0.1%25' (%25 is an encoded %) or 'touch=0.001'");
    }

    /** @throws IllegalArgumentException if the text is not a time from 1 second to 30 days */
    static Duration within(@Nullable String text) {
        if (text == null) {
            return Duration.ofMinutes(1);
        }
        try {
            Duration within = text.length() > MAX_LENGTH ? Duration.ZERO : Rate.parseDuration(text);
            if (within.compareTo(Duration.ofSeconds(1)) >= 0 && within.compareTo(MAX_WITHIN) <= 0) {
                return within;
            }
        } catch (IllegalArgumentException | ArithmeticException notADuration) {
            // The requirement is the same.
        }
        throw new IllegalArgumentException("within must be a time from 1s to 30d, such as 'within=1m'");
    }

    /** @param keys describes a key as far as the caller may see it */
    PolicyDemandDescriptor read(ThrottlePolicy policy, Function<String, KeyDescriptor> keys) {
        Map<String, DemandDescriptor> tiers = new TreeMap<>();
        policy.tiers().keySet().forEach(tier -> tiers.put(tier, demand(policy, tier, keys)));
        return new PolicyDemandDescriptor(
                policy.name(),
                RateLimitsEndpoint.text(policy.mode()),
                policy.key(),
                policy.mode() == Mode.SHADOW
                        ? null
                        : "where a policy is enforced, clients may ask less often, or retry; shadow mode has no such effect",
                demand(policy, null, keys),
                tiers);
    }

    private DemandDescriptor demand(
            ThrottlePolicy policy, @Nullable String tier, Function<String, KeyDescriptor> keys) {
        Demand demand = Objects.requireNonNull(listener.demand(policy.name(), tier));
        Suggestion suggestion = demand.suggest(touch, within);
        return new DemandDescriptor(
                LimitDescriptor.of(demand.spec()),
                demand.keys(),
                demand.sample(),
                Math.round(demand.requests()),
                touched(demand.touched()),
                IntStream.range(0, demand.rates().size())
                        .mapToObj(rate -> curve(demand, rate))
                        .toList(),
                suggestion == null
                        ? null
                        : new SuggestionDescriptor(
                                suggestion.spec().rate().toString(),
                                suggestion.spec().capacity(),
                                RateLimitsEndpoint.text(suggestion.spec().refill()),
                                new TouchedDescriptor(
                                        suggestion.touched().keys(),
                                        suggestion.touched().share(),
                                        suggestion.atLeast(),
                                        suggestion.atMost(),
                                        suggestion.touched().requests()),
                                suggestion.outermost()),
                demand.hours().stream()
                        .map(hour -> new HourDescriptor(hour.keys(), hour.p99(), hour.max()))
                        .toList(),
                demand.heaviest().stream()
                        .map(heavy ->
                                new HeavyKeyDescriptor(keys.apply(heavy.key()), heavy.requests(), up(heavy.capacity())))
                        .toList());
    }

    private static TouchedDescriptor touched(Touched touched) {
        return new TouchedDescriptor(
                touched.keys(), touched.share(), touched.atLeast(), touched.atMost(), touched.requests());
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
