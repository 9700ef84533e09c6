package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.DashboardReader.DashboardData.Change;
import io.ratelimit.actuate.DashboardReader.DashboardData.PolicyData;
import io.ratelimit.actuate.DecisionHistory.Kind;
import io.ratelimit.actuate.DecisionHistory.Step;
import io.ratelimit.actuate.Descriptors.BackendDescriptor;
import io.ratelimit.actuate.Descriptors.ChangedDescriptor;
import io.ratelimit.actuate.Descriptors.DeniedKeyDescriptor;
import io.ratelimit.actuate.Descriptors.LimitDescriptor;
import io.ratelimit.actuate.Descriptors.OutageDescriptor;
import io.ratelimit.actuate.RateLimitDashboard.Identity;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.policy.ConfiguredPolicies;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Reads the data of the dashboard. It calls no backend, so a slow backend doesn't delay it. Thread-safe.
 */
record DashboardReader(
        Identity instance,
        Throttlers throttlers,
        LimitChanges changes,
        DecisionHistory history,
        DeniedKeys deniedKeys,
        @Nullable Backend backend,
        Configured configured) {

    /**
     * The facts of a policy that depend on its configuration.
     *
     * @param outage returns the decisions of the policy while its backend is unavailable; null while it isn't
     * @param limitsInFlight whether the policy, one of its tiers or one of its overrides limits how many calls are in flight
     * @param oneBucket whether all calls of the policy share one bucket
     */
    record Configured(
            Function<PolicyThrottler, @Nullable OutageDescriptor> outage,
            Predicate<ThrottlePolicy> limitsInFlight,
            Predicate<ThrottlePolicy> oneBucket) {

        static Configured of(ConfiguredPolicies policies, Predicate<ThrottlePolicy> oneBucket) {
            return new Configured(
                    throttler -> OutageDescriptor.of(
                            throttler,
                            policies.failureRule(throttler.policy()),
                            policies.sharedBackend().localShare()),
                    policies::limitsInFlight,
                    oneBucket);
        }
    }

    /** Returns the present state, and the counts of the steps after the given second. */
    DashboardData read(Step step, long since, Change change, boolean showKeys) {
        long second = history.second(step);
        long first = Math.max(second - step.history(), 0);
        long from = since > second ? first : Math.max(since - since % step.seconds(), first);
        deniedKeys.refreshTops(TimeSource.system());
        return new DashboardData(
                instance.id(),
                instance.title(),
                instance.line(),
                second,
                from,
                step.history(),
                step.seconds(),
                change,
                Stream.ofNullable(BackendDescriptor.ofUsed(backend, throttlers)).toList(),
                throttlers.all().stream()
                        .map(throttler -> policy(throttler, step, from, second, showKeys))
                        .toList());
    }

    private PolicyData policy(PolicyThrottler throttler, Step step, long from, long second, boolean showKeys) {
        ThrottlePolicy policy = throttler.policy();
        boolean lastSeen = throttler.backend() != null;
        boolean oneBucket = configured.oneBucket.test(policy);
        Map<String, LimitDescriptor> tiers = new TreeMap<>();
        policy.tiers().forEach((tier, spec) -> tiers.put(tier, limit(policy, tier, spec)));
        return new PolicyData(
                policy.name(),
                Descriptors.text(policy.mode()),
                policy.isGlobal() && !oneBucket ? List.of("key") : policy.key(),
                limit(policy, null, policy.spec()),
                tiers,
                configured.limitsInFlight.test(policy) ? throttlers.inFlight(policy.name()) : null,
                Objects.toString(policy.shares(), null),
                oneBucket && policy.spec().hasRate() ? available(throttler, lastSeen) : null,
                lastSeen,
                configured.outage.apply(throttler),
                policy.lease().isZero() ? null : throttlers.leased(policy.name()),
                throttlers.waiting(policy.name()),
                policy.maxWait().isZero() ? 0 : policy.queueLimit(),
                history.counts(policy.name(), Kind.ALLOWED, step, from, second),
                history.counts(policy.name(), Kind.DENIED, step, from, second),
                history.counts(policy.name(), Kind.SHADOW_DENIED, step, from, second),
                history.counts(policy.name(), Kind.FAILED, step, from, second),
                deniedKeys.latestTop(policy.name()).stream()
                        .map(key -> DeniedKeyDescriptor.of(policy, key, showKeys))
                        .toList());
    }

    private LimitDescriptor limit(ThrottlePolicy policy, @Nullable String tier, BucketSpec spec) {
        return LimitDescriptor.of(spec).with(ChangedDescriptor.of(changes.difference(policy.name(), tier)));
    }

    private @Nullable Long available(PolicyThrottler throttler, boolean lastSeen) {
        if (lastSeen) {
            long remaining = history.lastRemaining(throttler.policy().name());
            return remaining < 0 ? null : remaining;
        }
        try {
            return throttler.forKey().snapshot().available();
        } catch (BackendException unavailable) {
            return null;
        }
    }

    /**
     * @param instance a random identifier that changes with each start of the application
     * @param second the last second of the counts, numbered from the start
     * @param from the second before the first second of the counts
     * @param seconds the number of seconds that the page keeps
     * @param step the seconds of each count: 1, or 60
     */
    record DashboardData(
            String instance,
            String title,
            String identity,
            long second,
            long from,
            int seconds,
            int step,
            Change change,
            List<BackendDescriptor> backends,
            List<PolicyData> policies) {

        /**
         * The information for the curl line that changes a limit.
         *
         * @param path the path of the endpoint that changes limits, below the actuator's base path; null if it isn't exposed
         * @param forAll whether changes for all instances are possible
         */
        record Change(@Nullable String path, boolean writable, boolean forAll, boolean authenticated) {}

        /**
         * A policy and its decisions per step; a count of -1 is unknown.
         *
         * @param key the parts of the key; one part {@code key} if only annotations give keys
         * @param tiers the limits of the tiers by name
         * @param running the calls in flight; null if the policy doesn't count them
         * @param shares the guaranteed shares in words; null if there are none
         * @param available the tokens in the bucket of a policy that has only one; null if they are unknown, and for other policies
         * @param lastSeen whether {@code available} is the result of the backend's last decision, not the present state
         * @param outage the decisions while the backend is unavailable; null while it isn't, or for buckets in memory
         * @param leased the tokens that this instance has taken ahead; null if the policy has no lease
         * @param queueLimit the maximum number of queued calls; 0 if calls may not wait
         */
        record PolicyData(
                String name,
                String mode,
                List<String> key,
                LimitDescriptor limit,
                Map<String, LimitDescriptor> tiers,
                @Nullable Integer running,
                @Nullable String shares,
                @Nullable Long available,
                boolean lastSeen,
                @Nullable OutageDescriptor outage,
                @Nullable Long leased,
                int waiting,
                int queueLimit,
                int[] allowed,
                int[] denied,
                int[] shadowDenied,
                int[] failed,
                List<DeniedKeyDescriptor> deniedKeys) {}
    }
}
