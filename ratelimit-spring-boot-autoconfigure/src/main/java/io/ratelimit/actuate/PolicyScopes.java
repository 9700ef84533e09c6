package io.ratelimit.actuate;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.Descriptors.OutageDescriptor;
import io.ratelimit.actuate.Descriptors.ScopeDescriptor;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import java.util.List;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.web.util.pattern.PathPattern;

/**
 * Describes what each policy applies to, and which backend holds its buckets.
 *
 * @param requests the policies of the filter, which are unknown while the endpoint is created
 * @param operations the annotated methods; null if there are none
 */
record PolicyScopes(
        ConfiguredPolicies policies,
        Supplier<RequestPolicies> requests,
        @Nullable RateLimitedOperations operations,
        Throttlers throttlers,
        BucketLocator buckets) {

    ScopeDescriptor of(ThrottlePolicy policy) {
        RequestPolicy request = requests.get().all().stream()
                .filter(each -> each.policy().name().equals(policy.name()))
                .findFirst()
                .orElse(null);
        String backend = ConfiguredPolicies.backendOf(throttlers.get(policy.name()));
        return new ScopeDescriptor(
                appliesTo(policy.name()),
                request == null ? null : Descriptors.text(request.phase()),
                request == null ? List.of() : texts(request.paths()),
                request == null ? List.of() : texts(request.excludePaths()),
                request == null ? List.of() : List.copyOf(new TreeSet<>(request.methods())),
                buckets.overrides(policy.name()),
                limitBy(policy.name()),
                backend,
                backend.equals("local") ? null : Descriptors.text(policies.failureRule(policy)));
    }

    /** Returns the decisions of a policy while its backend is unavailable; null while it isn't. */
    @Nullable
    OutageDescriptor outage(ThrottlePolicy policy) {
        return OutageDescriptor.of(throttlers.get(policy.name()), policies.failureRule(policy), policies.localShare());
    }

    private String appliesTo(String policy) {
        Policy configured = configured(policy);
        boolean annotated = configured == null
                ? operations != null && operations.limit(policy) != null
                : configured.appliesTo() == AppliesTo.ANNOTATED;
        return annotated ? "annotated" : configured == null ? "code" : "requests";
    }

    private @Nullable Policy configured(String policy) {
        ConfiguredPolicy configured = policies.get(policy);
        return configured == null ? null : configured.properties();
    }

    private @Nullable String limitBy(String policy) {
        Policy configured = configured(policy);
        return configured == null || configured.limit() == null
                ? null
                : configured.limit().toString();
    }

    private static List<String> texts(List<PathPattern> patterns) {
        return patterns.stream().map(PathPattern::getPatternString).toList();
    }
}
