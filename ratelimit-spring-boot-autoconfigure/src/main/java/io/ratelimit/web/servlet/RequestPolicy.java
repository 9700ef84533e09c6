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
import io.ratelimit.web.servlet.endpoint.RequestPath;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/** A policy as the filter enforces it: the requests that it covers, and the bucket and cost of each. Immutable. */
public final class RequestPolicy {

    private final PolicyThrottler throttler;
    private final RequestKey key;
    private final RequestCost cost;
    private final Phase phase;
    private final Selection selection;
    private final boolean keepsCharges;
    private final @Nullable RefundOn refundOn;
    private final @Nullable Settle settle;

    /** @param throttler answers for the policy */
    RequestPolicy(
            PolicyThrottler throttler,
            RequestKey key,
            RequestCost cost,
            Phase phase,
            Selection selection,
            Afterwards afterwards) {
        this.throttler = throttler;
        this.key = key;
        this.cost = cost;
        this.phase = phase;
        this.selection = selection;
        this.keepsCharges = afterwards.keepsCharges();
        this.refundOn = afterwards.refundOn();
        this.settle = afterwards.settle();
    }

    /** Returns the key that selects the bucket of a request. */
    public RequestKey key() {
        return key;
    }

    /** Returns the tokens that a request takes. */
    public RequestCost cost() {
        return cost;
    }

    /** Returns what is notified when the cost or the condition can't be evaluated. */
    FailureListener failures() {
        return key.failures();
    }

    /** Returns the phase in which the policy decides. */
    public Phase phase() {
        return phase;
    }

    /** Returns whether the policy keeps the tokens of a request that a later policy denies. */
    public boolean keepsCharges() {
        return keepsCharges;
    }

    /** Returns the covered requests. */
    public Selection selection() {
        return selection;
    }

    /** Returns the place of the actual cost, or null if the cost is final. */
    public @Nullable Settle settle() {
        return settle;
    }

    /** Returns the limit as it is now. */
    public ThrottlePolicy policy() {
        return throttler.policy();
    }

    /**
     * Returns whether an allowed response may show the policy's level. The level of a bucket that clients share would show
     * each client the load of the others. A policy that gives the tokens of a success back is no limit to plan requests by.
     */
    boolean showsLevel() {
        return key.isPerClient() && (refundOn == null || !refundOn.coversSuccess());
    }

    /** Returns the charge for a request to a covered path, or null if the policy doesn't cover the request. */
    @Nullable
    Charge charge(ServletRequestFacts request) {
        ThrottlePolicy policy = policy();
        return concerns(request, policy)
                ? key.charge(policy, cost.tokens(request, policy.name(), failures()), request)
                : null;
    }

    /** Returns whether the policy covers a request by its method and the condition. */
    boolean concerns(ServletRequestFacts request, ThrottlePolicy policy) {
        RequestCondition condition = selection.condition();
        return coversMethod(request) && (condition == null || condition.matches(request, policy.name(), failures()));
    }

    /** Returns whether the policy gives back the tokens of any requests. */
    public boolean refunds() {
        return refundOn != null;
    }

    /** Returns whether the policy gives back the tokens of a request with this response. */
    public boolean refunds(int status, boolean authenticated) {
        return refundOn != null && refundOn.covers(status, authenticated);
    }

    /** Returns whether the authentication of a request decides on its refund. */
    public boolean refundsAuthenticated() {
        return refundOn != null && refundOn.isAuthenticated();
    }

    /** Returns the statuses with a refund; null if the status of a response doesn't decide. */
    public @Nullable String refundedStatuses() {
        return refundOn == null || refundOn.isAuthenticated() ? null : refundOn.toString();
    }

    /** Returns the statuses without a refund, if all others have one; null otherwise. */
    public @Nullable String statusesWithoutRefund() {
        return refundOn != null && refundOn.onlyExcludes() ? refundOn.toString().replace("!", "") : null;
    }

    boolean isSettledByCode() {
        return settle != null && settle.isByCode();
    }

    /**
     * @param actual returns the actual cost; null for none
     * @param mayWait whether this thread may wait for a remote store
     */
    void settle(Answer taken, Callable<? extends @Nullable Object> actual, Throttlers throttlers, boolean mayWait) {
        if (settle != null) {
            cost.settle(taken, actual, "its actual cost, " + settle, throttlers, mayWait, failures());
        }
    }

    /**
     * Returns the value that is read as the actual cost of a request; null if there is none. The headers of a rejection,
     * such as that of an annotated method that the handler calls, are no costs.
     *
     * @param reported the cost that the application's code set; null for none
     */
    @Nullable
    Object actualCost(HttpServletRequest request, HttpServletResponse response, @Nullable Long reported) {
        if (settle == null) {
            return null;
        }
        return switch (settle.source()) {
            case CODE -> reported;
            case ATTRIBUTE -> request.getAttribute(settle.name());
            case RESPONSE_HEADER -> Rejections.isRejected(request) ? null : response.getHeader(settle.name());
        };
    }

    private boolean coversMethod(ServletRequestFacts request) {
        return request.isPreflight() ? selection.methods().contains("OPTIONS") : selection.covers(request.method());
    }

    /** Returns whether the policy may cover requests to an endpoint. The condition is not considered. */
    boolean mayCover(String method, PathContainer endpoint) {
        RequestPath path = RequestPath.of(endpoint);
        return selection.covers(method)
                && (selection.covers(path) || !selection.isExcluded(path) && hasPathBelow(endpoint));
    }

    /** Returns whether one of the paths, such as {@code /items/special}, is one of those of an endpoint, {@code /items/{id}}. */
    private boolean hasPathBelow(PathContainer endpoint) {
        PathPattern pattern = PathPatternParser.defaultInstance.parse(endpoint.value());
        return selection.paths().stream()
                .anyMatch(path -> pattern.matches(PathContainer.parsePath(path.getPatternString())));
    }

    public boolean covers(PathContainer path) {
        return selection.covers(RequestPath.of(path));
    }

    /**
     * What becomes of the tokens that a request took.
     *
     * @param keepsCharges whether they stay taken if a later policy denies the request
     * @param refundOn the responses that give them back; null if there are none
     * @param settle the place of the actual cost; null if the cost is final
     */
    record Afterwards(
            boolean keepsCharges,
            @Nullable RefundOn refundOn,
            @Nullable Settle settle) {}

    /**
     * The requests that a policy covers.
     *
     * @param paths the covered paths, below the context path; empty for all paths
     * @param excludePaths the paths that the policy doesn't cover
     * @param methods the covered methods, where GET includes HEAD; empty for all methods
     * @param condition the condition of covered requests, or null if there is none
     */
    public record Selection(
            List<PathPattern> paths,
            List<PathPattern> excludePaths,
            Set<String> methods,
            @Nullable RequestCondition condition) {

        public Selection {
            paths = List.copyOf(paths);
            excludePaths = List.copyOf(excludePaths);
            methods = Set.copyOf(methods);
        }

        boolean covers(String method) {
            return methods.isEmpty() || methods.contains(method) || method.equals("HEAD") && methods.contains("GET");
        }

        /**
         * Returns whether a path is covered. A filter behind this one may drop a trailing slash, so it is ignored for
         * included paths. Exclusions match literally. Tries each pattern: a request's policies are found by an index.
         */
        boolean covers(RequestPath path) {
            return !isExcluded(path)
                    && (paths.isEmpty() || matches(paths, path) || matches(paths, path.withoutTrailingSlash()));
        }

        boolean isExcluded(RequestPath path) {
            return matches(excludePaths, path);
        }

        private static boolean matches(List<PathPattern> patterns, RequestPath path) {
            return patterns.stream().anyMatch(pattern -> pattern.matches(path.parsed()));
        }
    }
}
