package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.Descriptors.BackendDescriptor;
import io.ratelimit.actuate.Descriptors.BucketDescriptor;
import io.ratelimit.actuate.Descriptors.ChangeDescriptor;
import io.ratelimit.actuate.Descriptors.ChangedDescriptor;
import io.ratelimit.actuate.Descriptors.DeniedKeyDescriptor;
import io.ratelimit.actuate.Descriptors.KeyDescriptor;
import io.ratelimit.actuate.Descriptors.LimitDescriptor;
import io.ratelimit.actuate.Descriptors.OutageDescriptor;
import io.ratelimit.actuate.Descriptors.PoliciesDescriptor;
import io.ratelimit.actuate.Descriptors.PolicyDescriptor;
import io.ratelimit.actuate.Descriptors.ResetDescriptor;
import io.ratelimit.actuate.Descriptors.ScopeDescriptor;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.change.LimitChanges.Changed;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import io.ratelimit.web.servlet.RequestPolicy.Selection;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.web.util.pattern.PathPattern;

/**
 * Creates the descriptors of policies and buckets.
 *
 * @param requests the policies of the filter, which are unknown while the endpoint is created
 */
record DescriptorFactory(
        Throttlers throttlers,
        LimitChanges changes,
        DeniedKeys deniedKeys,
        ConfiguredPolicies policies,
        ObjectProvider<RequestPolicies> requests,
        @Nullable RateLimitedOperations operations,
        @Nullable Backend backend) {

    /** The selection by a policy that the filter doesn't use. */
    private static final Selection ALL = new Selection(List.of(), List.of(), Set.of(), null);

    PoliciesDescriptor policies(Collection<PolicyThrottler> all, boolean showKeys) {
        Map<String, PolicyDescriptor> descriptors = new LinkedHashMap<>();
        all.forEach(throttler -> descriptors.put(throttler.policy().name(), policy(throttler.policy(), showKeys)));
        return new PoliciesDescriptor(descriptors, BackendDescriptor.ofUsed(backend, throttlers));
    }

    PolicyDescriptor policy(ThrottlePolicy policy, boolean showKeys) {
        Map<String, LimitDescriptor> tiers = new TreeMap<>();
        policy.tiers().forEach((tier, spec) -> tiers.put(tier, limit(policy, spec, tier)));
        return new PolicyDescriptor(
                policy.name(),
                Descriptors.text(policy.mode()),
                policy.key(),
                limit(policy, policy.spec(), null),
                Objects.toString(policy.shares(), null),
                tiers,
                scope(policy),
                OutageDescriptor.of(
                        throttlers.get(policy.name()),
                        policies.failureRule(policy),
                        policies.sharedBackend().localShare()),
                lease(policy),
                throttlers.size(policy.name()),
                throttlers.waiting(policy.name()),
                policies.limitsInFlight(policy) ? throttlers.inFlight(policy.name()) : null,
                deniedKeys.top(policy.name()).stream()
                        .map(key -> DeniedKeyDescriptor.of(policy, key, showKeys))
                        .toList());
    }

    /**
     * Returns a limit with its difference from the configuration, and with the state of the bucket for a policy that has only
     * one and isn't off.
     */
    private LimitDescriptor limit(ThrottlePolicy policy, BucketSpec spec, @Nullable String tier) {
        boolean givesKeys = operations != null && operations.givesKeys(policy.name());
        LimitDescriptor limit = policy.isGlobal() && !givesKeys && policy.mode() != Mode.OFF
                ? limit(Charge.of(policy, tier, "", 1))
                : LimitDescriptor.of(spec);
        return limit.with(changed(policy.name(), tier));
    }

    private @Nullable ChangedDescriptor changed(String policy, @Nullable String tier) {
        return ChangedDescriptor.of(changes.difference(policy, tier));
    }

    ChangeDescriptor change(String policy, @Nullable String tier, Changed changed) {
        return new ChangeDescriptor(
                policy,
                tier,
                LimitDescriptor.of(changed.before()),
                LimitDescriptor.of(changed.after()).with(changed(policy, tier)),
                Descriptors.instances(changed.forAll()),
                Objects.toString(changed.until(), null));
    }

    /** Returns a limit with the state of the bucket, or without it if the backend fails. */
    private LimitDescriptor limit(Charge charge) {
        try {
            return LimitDescriptor.of(charge.spec(), throttlers.snapshot(charge));
        } catch (BackendException unavailable) {
            return LimitDescriptor.of(charge.spec());
        }
    }

    /**
     * @param charge null if the policy is off for the key
     * @throws BackendException if the backend that holds the bucket fails
     */
    BucketDescriptor bucket(ThrottlePolicy policy, @Nullable Charge charge, boolean showKeys) {
        boolean hasBucket = charge != null && charge.policy().mode() != Mode.OFF;
        return new BucketDescriptor(
                policy.name(),
                Descriptors.text(charge == null ? Mode.OFF : charge.policy().mode()),
                charge == null ? policy.mode() != Mode.OFF : charge.policy() != policy,
                charge == null ? null : key(policy, charge, showKeys),
                charge == null
                        ? null
                        : LimitDescriptor.of(charge.spec(), hasBucket ? throttlers.snapshot(charge) : null),
                charge == null || charge.share() == null
                        ? null
                        : Objects.toString(charge.share().guaranteed(), null),
                charge == null || charge.policy() != policy ? null : limitBy(policies.properties(policy.name())),
                charge == null || charge.spec().inFlight() == 0 ? null : throttlers.inFlight(charge),
                List.copyOf(new TreeSet<>(policy.tiers().keySet())),
                backend != null && policy.mode() != Mode.OFF && isOnBackend(policy)
                        ? BackendDescriptor.of(backend)
                        : null);
    }

    ResetDescriptor reset(ThrottlePolicy policy, Charge charge, boolean showKeys) {
        boolean forAll = isOnBackend(policy);
        return new ResetDescriptor(
                policy.name(),
                key(policy, charge, showKeys),
                limit(charge),
                Descriptors.instances(forAll),
                forAll ? lease(policy) : null);
    }

    private boolean isOnBackend(ThrottlePolicy policy) {
        return throttlers.get(policy.name()).backend() != null;
    }

    private static @Nullable String lease(ThrottlePolicy policy) {
        return policy.lease().isZero() ? null : Rate.format(policy.lease());
    }

    private @Nullable KeyDescriptor key(ThrottlePolicy policy, Charge charge, boolean showKeys) {
        String key = DeniedKeys.keyOf(charge);
        return key.isEmpty() ? null : KeyDescriptor.of(policy, key, showKeys);
    }

    private ScopeDescriptor scope(ThrottlePolicy policy) {
        RequestPolicy request = requests.getObject().all().stream()
                .filter(each -> each.policy().name().equals(policy.name()))
                .findFirst()
                .orElse(null);
        Selection covered = request == null ? ALL : request.selection();
        Policy configured = policies.properties(policy.name());
        String backend = ConfiguredPolicies.backendOf(throttlers.get(policy.name()));
        return new ScopeDescriptor(
                appliesTo(policy.name(), configured),
                request == null ? null : Descriptors.text(request.phase()),
                texts(covered.paths()),
                texts(covered.excludePaths()),
                List.copyOf(new TreeSet<>(covered.methods())),
                policies.overrides(policy.name()).size(),
                limitBy(configured),
                backend,
                backend.equals("local") ? null : Descriptors.text(policies.failureRule(policy)));
    }

    private String appliesTo(String policy, @Nullable Policy configured) {
        boolean annotated = configured == null
                ? operations != null && operations.limit(policy) != null
                : configured.appliesTo() == AppliesTo.ANNOTATED;
        return annotated ? "annotated" : configured == null ? "code" : "requests";
    }

    private static @Nullable String limitBy(@Nullable Policy configured) {
        return configured == null || configured.limit() == null
                ? null
                : configured.limit().toString();
    }

    private static List<String> texts(List<PathPattern> patterns) {
        return patterns.stream().map(PathPattern::getPatternString).toList();
    }
}
