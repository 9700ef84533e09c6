package io.ratelimit.web.servlet;

import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.PathContainer.Separator;
import org.springframework.web.util.pattern.PathPattern;

/**
 * A policy as the filter enforces it: on which requests, and whose bucket it charges. Immutable.
 *
 * @param throttler of the limit
 * @param key whose bucket
 * @param cost the tokens of a request
 * @param phase where it is asked
 * @param keepsCharges whether it keeps what it took when a later policy refuses the request
 * @param paths where it applies, below the context path; everywhere if empty
 * @param excludePaths where it doesn't
 * @param methods of which requests, with GET for HEAD; of all if empty
 * @param condition to which of those, if not to all
 * @param refundOn the statuses of responses for which it gives back what it took, if there are any
 * @param failures is told where cost or condition can't be
 */
public record RequestPolicy(
        Throttler throttler,
        RequestKey key,
        RequestCost cost,
        Phase phase,
        boolean keepsCharges,
        List<PathPattern> paths,
        List<PathPattern> excludePaths,
        Set<String> methods,
        @Nullable RequestCondition condition,
        @Nullable RefundOn refundOn,
        FailureListener failures) {

    /** The limit as it is now. */
    public ThrottlePolicy policy() {
        return throttler.policy();
    }

    /** What a request is charged, or null if the policy doesn't apply to it. */
    @Nullable
    Charge charge(ServletRequestFacts request) {
        ThrottlePolicy now = throttler.policy();
        return appliesTo(request, now) ? key.charge(now, cost.tokens(request, now.name(), failures), request) : null;
    }

    /** Whether the policy covers a request, and would charge it for nothing else being said. */
    boolean appliesTo(ServletRequestFacts request, ThrottlePolicy now) {
        boolean everywhere = paths.isEmpty() && excludePaths.isEmpty();
        return appliesToMethod(request) && (everywhere || coversAny(request.paths())) && holds(request, now);
    }

    /** Whether it gives back what it took when a response has this status. */
    boolean refunds(int status) {
        return refundOn != null && refundOn.covers(status);
    }

    private boolean holds(ServletRequestFacts request, ThrottlePolicy policy) {
        return condition == null || condition.holds(request, policy.name(), failures);
    }

    private boolean appliesToMethod(ServletRequestFacts request) {
        String method = request.method();
        return request.isPreflight()
                ? methods.contains("OPTIONS")
                : methods.isEmpty() || methods.contains(method) || method.equals("HEAD") && methods.contains("GET");
    }

    /**
     * Whether one of the paths that a request may ask for is covered: {@code /health/../rest/x} must not pass for
     * {@code /health/**} where another servlet gets it as {@code /rest/x}. One that can't be read at all is covered.
     */
    private boolean coversAny(List<PathContainer> readings) {
        for (int i = 0; i < readings.size(); i++) {
            if (covers(readings.get(i))) {
                return true;
            }
        }
        return readings.isEmpty();
    }

    /** Whether the policy applies at a path. An exclusion is taken as written: what it doesn't name is charged. */
    public boolean covers(PathContainer path) {
        return isIncluded(path) && !matches(excludePaths, path);
    }

    /** A filter behind this one may drop a trailing slash, so {@code /login/} has to count as {@code /login}. */
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
}
