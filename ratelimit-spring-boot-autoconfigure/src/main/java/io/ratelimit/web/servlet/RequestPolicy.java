package io.ratelimit.web.servlet;

import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.Settle;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.PathContainer.Separator;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * A policy as the filter enforces it: the requests that it covers, and the bucket and cost of each. Immutable.
 *
 * <p>Made by {@link #builder}.
 */
public final class RequestPolicy {

    private final PolicyThrottler throttler;
    private final RequestKey key;
    private final FailureListener failures;
    private final RequestCost cost;
    private final Phase phase;
    private final boolean keepsCharges;
    private final List<PathPattern> paths;
    private final List<PathPattern> excludePaths;
    private final Set<String> methods;
    private final @Nullable RequestCondition condition;
    private final @Nullable RefundOn refundOn;
    private final @Nullable Settle settle;

    private RequestPolicy(Builder builder) {
        this.throttler = builder.throttler;
        this.key = builder.key;
        this.failures = builder.failures;
        this.cost = builder.cost;
        this.phase = builder.phase;
        this.keepsCharges = builder.keepsCharges;
        this.paths = builder.paths;
        this.excludePaths = builder.excludePaths;
        this.methods = builder.methods;
        this.condition = builder.condition;
        this.refundOn = builder.refundOn;
        this.settle = builder.settle;
    }

    /**
     * Returns a builder of a policy that charges each request one token, after authentication.
     *
     * @param throttler answers for the policy
     * @param key selects the bucket of a request
     * @param failures is notified when the cost or the condition can't be evaluated
     */
    public static Builder builder(PolicyThrottler throttler, RequestKey key, FailureListener failures) {
        return new Builder(throttler, key, failures);
    }

    /** Returns the limit as it is now. */
    public ThrottlePolicy policy() {
        return throttler.policy();
    }

    /** Returns the key, which selects the bucket of a request. */
    public RequestKey key() {
        return key;
    }

    /**
     * Returns whether an allowed response may show the policy's level. The level of a bucket that clients share would show
     * each client the load of the others. A policy that gives the tokens of a success back is no limit to plan requests by.
     */
    boolean showsLevel() {
        return key.isPerClient() && (refundOn == null || !refundOn.coversSuccess());
    }

    /** Returns the tokens that a request takes. */
    public RequestCost cost() {
        return cost;
    }

    /** Returns the phase in which the policy decides. */
    public Phase phase() {
        return phase;
    }

    /** Returns whether the policy keeps the tokens of a request that a later policy denies. */
    public boolean keepsCharges() {
        return keepsCharges;
    }

    /** Returns the covered paths, below the context path. Empty for all paths. */
    public List<PathPattern> paths() {
        return paths;
    }

    /** Returns the paths that the policy doesn't cover. */
    public List<PathPattern> excludePaths() {
        return excludePaths;
    }

    /** Returns the covered methods, where GET includes HEAD. Empty for all methods. */
    public Set<String> methods() {
        return methods;
    }

    /** Returns the condition of covered requests, or null if there is none. */
    public @Nullable RequestCondition condition() {
        return condition;
    }

    /** Returns the responses that give the tokens back, or null if there are none. */
    public @Nullable RefundOn refundOn() {
        return refundOn;
    }

    /** Returns the place of the actual cost, or null if the cost is final. */
    public @Nullable Settle settle() {
        return settle;
    }

    /** Returns the listener for what can't be evaluated. */
    FailureListener failures() {
        return failures;
    }

    /** Returns the charge for a request to a covered path, or null if the policy doesn't cover the request. */
    @Nullable
    Charge charge(ServletRequestFacts request) {
        ThrottlePolicy policy = policy();
        return concerns(request, policy)
                ? key.charge(policy, cost.tokens(request, policy.name(), failures), request)
                : null;
    }

    /** Returns whether the policy covers a request by its method and the condition. */
    boolean concerns(ServletRequestFacts request, ThrottlePolicy policy) {
        return coversMethod(request) && (condition == null || condition.matches(request, policy.name(), failures));
    }

    /**
     * Returns whether the policy gives back the tokens of a request with this response.
     *
     * @param status the status of the response
     * @param authenticated whether the request got past authentication with a user
     */
    public boolean refunds(int status, boolean authenticated) {
        return refundOn != null && refundOn.covers(status, authenticated);
    }

    /**
     * Settles a request by its actual cost, if the policy finds one.
     *
     * @param reported the cost that the application's code set; null for none
     * @param mayWait whether this thread may wait for a remote store
     */
    void settle(
            Answer taken,
            HttpServletRequest request,
            HttpServletResponse response,
            @Nullable Long reported,
            Throttlers throttlers,
            boolean mayWait) {
        Settle settle = this.settle;
        if (settle != null) {
            cost.settle(
                    taken,
                    () -> actualCost(settle, request, response, reported),
                    "its actual cost, " + settle,
                    throttlers,
                    mayWait,
                    failures);
        }
    }

    /**
     * Returns the value that is read as the actual cost of a request; null if there is none. The headers of a rejection,
     * such as that of an annotated method that the handler calls, are no costs.
     */
    private static @Nullable Object actualCost(
            Settle settle, HttpServletRequest request, HttpServletResponse response, @Nullable Long reported) {
        return switch (settle.source()) {
            case CODE -> reported;
            case ATTRIBUTE -> request.getAttribute(settle.name());
            case RESPONSE_HEADER -> Rejections.isRejected(request) ? null : response.getHeader(settle.name());
        };
    }

    private boolean coversMethod(ServletRequestFacts request) {
        return request.isPreflight() ? methods.contains("OPTIONS") : covers(request.method());
    }

    private boolean covers(String method) {
        return methods.isEmpty() || methods.contains(method) || method.equals("HEAD") && methods.contains("GET");
    }

    /** Returns whether the policy may cover requests to an endpoint. The condition is not considered. */
    boolean covers(String method, PathContainer pattern) {
        return covers(method)
                && !matches(excludePaths, pattern)
                && (isIncluded(pattern) || paths.stream().anyMatch(path -> isBelow(path, pattern)));
    }

    /** Returns whether a path, such as {@code /items/special}, is one of those of an endpoint, {@code /items/{id}}. */
    private static boolean isBelow(PathPattern path, PathContainer endpoint) {
        return PathPatternParser.defaultInstance
                .parse(endpoint.value())
                .matches(PathContainer.parsePath(path.getPatternString()));
    }

    /**
     * Returns whether the policy covers a path. Exclusions match literally, also for a trailing slash. Tries each pattern: a
     * request's policies are found by an index.
     */
    public boolean covers(PathContainer path) {
        return isIncluded(path) && !matches(excludePaths, path);
    }

    /** Returns whether a path is included. A filter behind this one may drop a trailing slash, so it is ignored. */
    private boolean isIncluded(PathContainer path) {
        return paths.isEmpty() || matches(paths, path) || matches(paths, withoutTrailingSlash(path));
    }

    private static boolean matches(List<PathPattern> patterns, PathContainer path) {
        for (int i = 0; i < patterns.size(); i++) {
            if (patterns.get(i).matches(path)) {
                return true;
            }
        }
        return false;
    }

    private static PathContainer withoutTrailingSlash(PathContainer path) {
        int last = path.elements().size() - 1;
        return last > 0 && path.elements().get(last) instanceof Separator ? path.subPath(0, last) : path;
    }

    /** A builder of {@link RequestPolicy}. */
    public static final class Builder {

        private final PolicyThrottler throttler;
        private final RequestKey key;
        private final FailureListener failures;
        private RequestCost cost = RequestCost.of(1);
        private Phase phase = Phase.AFTER_AUTHENTICATION;
        private boolean keepsCharges;
        private List<PathPattern> paths = List.of();
        private List<PathPattern> excludePaths = List.of();
        private Set<String> methods = Set.of();
        private @Nullable RequestCondition condition;
        private @Nullable RefundOn refundOn;
        private @Nullable Settle settle;

        private Builder(PolicyThrottler throttler, RequestKey key, FailureListener failures) {
            this.throttler = throttler;
            this.key = key;
            this.failures = failures;
        }

        /** Sets the tokens that a request takes; by default 1. */
        public Builder cost(RequestCost cost) {
            this.cost = cost;
            return this;
        }

        /** Sets the phase, and whether the policy keeps the tokens of a request that a later policy denies. */
        public Builder phase(Phase phase, boolean keepsCharges) {
            this.phase = phase;
            this.keepsCharges = keepsCharges;
            return this;
        }

        /** Sets the covered paths, below the context path (none for all), and the exceptions. */
        public Builder paths(List<PathPattern> paths, List<PathPattern> excludePaths) {
            this.paths = List.copyOf(paths);
            this.excludePaths = List.copyOf(excludePaths);
            return this;
        }

        /** Sets the covered methods, where GET includes HEAD; none for all. */
        public Builder methods(Set<String> methods) {
            this.methods = Set.copyOf(methods);
            return this;
        }

        /** Sets the condition of covered requests; null for none. */
        public Builder condition(@Nullable RequestCondition condition) {
            this.condition = condition;
            return this;
        }

        /** Sets the responses that give the tokens back; null for none. */
        public Builder refundOn(@Nullable RefundOn refundOn) {
            this.refundOn = refundOn;
            return this;
        }

        /** Sets the place of the actual cost; null for a final cost. */
        public Builder settle(@Nullable Settle settle) {
            this.settle = settle;
            return this;
        }

        /** Returns the policy. */
        public RequestPolicy build() {
            return new RequestPolicy(this);
        }
    }
}
