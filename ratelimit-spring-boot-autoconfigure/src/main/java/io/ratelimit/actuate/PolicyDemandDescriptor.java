package io.ratelimit.actuate;

import io.ratelimit.actuate.Descriptors.KeyDescriptor;
import io.ratelimit.actuate.Descriptors.LimitDescriptor;
import io.ratelimit.demand.Demand.Hour;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * The demand of a policy.
 *
 * @param note the reasons why the demand may differ from that without a limit, or with it; null if there are none
 * @param demand the demand of the keys without a tier
 * @param tiers the demand of the keys in each tier
 */
record PolicyDemandDescriptor(
        String policy,
        String mode,
        List<String> key,
        @Nullable String note,
        DemandDescriptor demand,
        Map<String, DemandDescriptor> tiers)
        implements OperationResponseBody {

    /**
     * The demand of the keys of one limit.
     *
     * @param limit the present limit
     * @param keys the number of keys, estimated if they are more than the sample
     * @param sample the number of keys that are followed
     * @param requests the number of requests, estimated
     * @param measuredMs the milliseconds from the first to the last request, of at most the last week
     * @param touched the keys that the present limit touches
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
     * The keys that a limit touches.
     *
     * @param keys the touched keys of the sample
     * @param share their share of the sample
     * @param atLeast the lower bound of the share of all keys, at a confidence of 95 %
     * @param atMost the upper bound
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

    /**
     * The capacities that shares of the keys need at a rate.
     *
     * @param capacities the capacities by share: p50, p90, p99, p99.9 and max
     */
    record CurveDescriptor(String rate, Map<String, CapacityDescriptor> capacities) {}

    /**
     * A capacity.
     *
     * @param atLeast the lower bound for all keys, at a confidence of 95 %
     * @param atMost the upper bound; null if the sample is too small for one
     */
    record CapacityDescriptor(
            long capacity, long atLeast, @Nullable Long atMost) {}

    /**
     * A suggested limit.
     *
     * @param outermost whether the rate is the lowest or the highest that is measured, so that a rate beyond may fit better
     */
    record SuggestionDescriptor(
            String rate, long capacity, String refill, TouchedDescriptor touched, boolean outermost) {}

    /**
     * A key that sends many requests.
     *
     * @param requests the lower bound of the number of its requests, estimated
     * @param capacity the capacity that it needs at the present rate
     */
    record HeavyKeyDescriptor(KeyDescriptor key, long requests, long capacity) {}
}
