package io.ratelimit.web.servlet;

import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.RequestKey;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.PathContainer.Separator;
import org.springframework.web.cors.CorsUtils;
import org.springframework.web.util.pattern.PathPattern;

/**
 * A policy as the filter enforces it: on which requests, and whose bucket it charges. Immutable.
 *
 * @param policy the limit
 * @param key whose bucket
 * @param cost the tokens of a request
 * @param phase where it is asked
 * @param keepsCharges whether it keeps what it took when a later policy refuses the request
 * @param paths where it applies, below the context path; everywhere if empty
 * @param excludePaths where it doesn't
 * @param methods of which requests, with GET for HEAD; of all if empty
 */
public record RequestPolicy(
        ThrottlePolicy policy,
        RequestKey key,
        long cost,
        Phase phase,
        boolean keepsCharges,
        List<PathPattern> paths,
        List<PathPattern> excludePaths,
        Set<String> methods) {

    private static final String OPTIONS = "OPTIONS";

    /** What a request is charged, or null if the policy doesn't apply to it. */
    @Nullable
    Charge charge(ServletRequestFacts request) {
        return appliesToMethod(request) && covers(request.path()) ? key.charge(policy, cost, request) : null;
    }

    private boolean appliesToMethod(ServletRequestFacts request) {
        if (methods.contains(OPTIONS) && request.method().equals(OPTIONS)) {
            return true;
        }
        boolean named = methods.isEmpty()
                || methods.contains(request.method())
                || request.method().equals("HEAD") && methods.contains("GET");
        return named && !CorsUtils.isPreFlightRequest(request.request());
    }

    /**
     * Whether the policy applies at a path. One that may be read in several ways, which honest clients don't send, is
     * covered by all policies: {@code /health/../rest/x} must not pass for {@code /health/**} where another servlet
     * gets it as {@code /rest/x}.
     */
    public boolean covers(@Nullable PathContainer path) {
        if (path == null) {
            return true;
        }
        return (paths.isEmpty() || matches(paths, withoutTrailingSlash(path))) && !matches(excludePaths, path);
    }

    private static boolean matches(List<PathPattern> patterns, PathContainer path) {
        for (int i = 0; i < patterns.size(); i++) {
            if (patterns.get(i).matches(path)) {
                return true;
            }
        }
        return false;
    }

    /** A filter behind this one may drop a trailing slash, so {@code /login/} has to count as {@code /login}. */
    private static PathContainer withoutTrailingSlash(PathContainer path) {
        int last = path.elements().size() - 1;
        return last > 0 && path.elements().get(last) instanceof Separator ? path.subPath(0, last) : path;
    }
}
