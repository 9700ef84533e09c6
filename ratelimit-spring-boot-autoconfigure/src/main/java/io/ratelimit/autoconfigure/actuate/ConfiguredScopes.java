package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.actuate.PolicyScope;
import io.ratelimit.actuate.Spelling;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.BackendKind;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import java.util.List;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;
import org.springframework.web.util.pattern.PathPattern;

/** Tells of each policy what it limits, and where its buckets are. */
final class ConfiguredScopes implements Function<ThrottlePolicy, PolicyScope> {

    private final RateLimitProperties properties;
    private final Supplier<RequestPolicies> requests;
    private final @Nullable RateLimitedOperations operations;
    private final ToIntFunction<String> overrides;

    ConfiguredScopes(
            RateLimitProperties properties,
            Supplier<RequestPolicies> requests,
            @Nullable RateLimitedOperations operations,
            ToIntFunction<String> overrides) {
        this.properties = properties;
        this.requests = requests;
        this.operations = operations;
        this.overrides = overrides;
    }

    @Override
    public PolicyScope apply(ThrottlePolicy policy) {
        RequestPolicy request = requests.get().all().stream()
                .filter(known -> known.policy().name().equals(policy.name()))
                .findFirst()
                .orElse(null);
        boolean here = properties.backendOf(policy) == BackendKind.LOCAL;
        return new PolicyScope(
                appliesTo(policy.name()),
                request == null ? null : Spelling.of(request.phase()),
                request == null ? List.of() : texts(request.paths()),
                request == null ? List.of() : texts(request.excludePaths()),
                request == null ? List.of() : List.copyOf(new TreeSet<>(request.methods())),
                overrides.applyAsInt(policy.name()),
                Spelling.of(properties.backendOf(policy)),
                here ? null : Spelling.of(properties.failureRuleOf(policy)));
    }

    private String appliesTo(String policy) {
        Policy configured = properties.policies().get(policy);
        boolean annotated = configured == null
                ? operations != null && operations.limit(policy) != null
                : configured.appliesTo() == AppliesTo.ANNOTATED;
        return annotated ? "annotated" : configured == null ? "code" : "requests";
    }

    private static List<String> texts(List<PathPattern> patterns) {
        return patterns.stream().map(PathPattern::getPatternString).toList();
    }
}
