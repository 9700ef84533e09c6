package io.ratelimit.demand;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.PolicyListener;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * A listener that measures the demand of all policies, and of each tier separately. Thread-safe.
 *
 * <p>A request counts for each policy that allows or denies it. If another policy denies the request, it doesn't count
 * for the policies that had the tokens. Keys whose limit an override or a resolver replaces aren't counted, nor are
 * requests that cost more than 16 times the capacity, which no limit near the present one allows. After a change of its
 * limit, a policy or a tier is measured anew, since the measured rates are multiples of its own.
 */
public final class DemandListener implements ThrottleListener, AutoCloseable {

    private static final long HOUR_NANOS = Duration.ofHours(1).toNanos();

    private final TimeSource time;
    private final List<PolicyDemand> policies = new CopyOnWriteArrayList<>();
    private @Nullable Future<?> nextHour;
    private boolean closed;

    /** @param time the clock of the requests */
    public DemandListener(TimeSource time) {
        this.time = time;
    }

    /**
     * Schedules the end of each hour and each week. At the end of a week the maxima of the week before it are forgotten.
     * Without a start all are kept.
     */
    public synchronized void start() {
        scheduleHour(time.nanoTime() + HOUR_NANOS);
    }

    private void scheduleHour(long due) {
        nextHour = time.maintainAt(due, () -> endHour(due));
    }

    /** Ends an hour, unless the call is early: a clock makes all pending calls when it is closed. */
    private synchronized void endHour(long due) {
        long now = time.nanoTime();
        if (!closed && now - due >= 0) {
            policies.forEach(policy -> policy.limits.endHour(now));
            scheduleHour(now + HOUR_NANOS);
        }
    }

    /** Schedules no more hours. */
    @Override
    public synchronized void close() {
        closed = true;
        if (nextHour != null) {
            nextHour.cancel(false);
        }
    }

    /** Returns the meters of a policy; null for one without a rate. */
    @Override
    public @Nullable PolicyListener added(PolicyThrottler throttler) {
        if (!throttler.policy().spec().hasRate()) {
            return null;
        }
        PolicyDemand meters = new PolicyDemand(throttler.policy());
        policies.add(meters);
        return meters;
    }

    @Override
    public void decided(Decision decision) {}

    /**
     * Returns the demand of a policy, or of one of its tiers, since the last change of its limit.
     *
     * @param tier null for the keys without a tier
     * @return null if there is no such policy or tier
     */
    public @Nullable Demand demand(String policy, @Nullable String tier) {
        MeasuredLimit limit = policies.stream()
                .filter(meters -> meters.name.equals(policy))
                .findFirst()
                .map(meters -> meters.limits.limit(tier))
                .orElse(null);
        return limit == null ? null : limit.meter.demand();
    }

    /**
     * @param tier the tier; null for the policy's own limit
     * @param prefix the beginning of the keys in the tier
     */
    private record MeasuredLimit(@Nullable String tier, BucketSpec spec, String prefix, DemandMeter meter) {

        boolean hasSpec(Charge charge) {
            return charge.spec() == spec || isSameBucket(charge.spec());
        }

        /** Returns whether another spec has the same buckets. The calls in flight of a key aren't part of its bucket. */
        boolean isSameBucket(BucketSpec other) {
            return spec.capacity() == other.capacity()
                    && spec.rate().equals(other.rate())
                    && spec.refill() == other.refill()
                    && spec.zone().equals(other.zone());
        }
    }

    /** The meters of a policy. Thread-safe. */
    private final class PolicyDemand implements PolicyListener {

        private final String name;
        private volatile Limits limits;

        PolicyDemand(ThrottlePolicy policy) {
            this.name = policy.name();
            this.limits = Limits.of(policy, null);
        }

        @Override
        public synchronized void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
            limits = Limits.of(after, limits);
        }

        @Override
        public void decided(Decision decision, Answer answer) {
            if (decision.allowed() || !answer.allowed() && asksForTokens(answer.outcome())) {
                limits.feed(answer, time);
            }
        }

        @Override
        public boolean handlesReleased() {
            return false;
        }
    }

    private static boolean asksForTokens(Outcome outcome) {
        return outcome != Outcome.MISSING_KEY && outcome != Outcome.TOO_MANY_IN_FLIGHT;
    }

    private record Limits(MeasuredLimit own, List<MeasuredLimit> tiers) {

        static Limits of(ThrottlePolicy policy, @Nullable Limits before) {
            List<MeasuredLimit> tiers = new ArrayList<>();
            policy.tiers().forEach((tier, spec) -> tiers.add(limit(policy, tier, spec, before)));
            return new Limits(limit(policy, null, policy.spec(), before), List.copyOf(tiers));
        }

        /** Returns the limit with the meter that it had, if it had the same buckets. */
        private static MeasuredLimit limit(
                ThrottlePolicy policy, @Nullable String tier, BucketSpec spec, @Nullable Limits before) {
            MeasuredLimit existing = before == null ? null : before.limit(tier);
            DemandMeter meter =
                    existing != null && existing.isSameBucket(spec) ? existing.meter : new DemandMeter(spec);
            return new MeasuredLimit(tier, spec, Charge.of(policy, tier, "", 1).key(), meter);
        }

        @Nullable
        MeasuredLimit limit(@Nullable String tier) {
            if (tier == null) {
                return own;
            }
            return tiers.stream()
                    .filter(limit -> tier.equals(limit.tier))
                    .findFirst()
                    .orElse(null);
        }

        void feed(Answer answer, TimeSource time) {
            MeasuredLimit limit = limitOf(answer.charge());
            if (limit.hasSpec(answer.charge())) {
                limit.meter.feed(answer, time);
            }
        }

        /** Returns the limit of the tier that the charge's key is in, or the policy's own limit. */
        private MeasuredLimit limitOf(Charge charge) {
            for (int i = 0; i < tiers.size(); i++) {
                if (charge.key().startsWith(tiers.get(i).prefix)) {
                    return tiers.get(i);
                }
            }
            return own;
        }

        void endHour(long nanos) {
            own.meter.endHour(nanos);
            tiers.forEach(tier -> tier.meter.endHour(nanos));
        }
    }
}
