package io.ratelimit.web.servlet;

import io.ratelimit.web.servlet.endpoint.PathIndex;
import io.ratelimit.web.servlet.endpoint.RequestPath;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.web.util.pattern.PathPattern;

/** The policies that cover a path, found by an index of all their patterns. Immutable. */
final class PolicyPaths {

    private final List<RequestPolicy> policies;
    private final boolean ignoresCase;
    private final BitSet onAllPaths = new BitSet();
    private final PathIndex<BitSet> included = new PathIndex<>();
    private final PathIndex<BitSet> excluded = new PathIndex<>();

    /**
     * @param ignoresCase whether Spring MVC ignores the case of paths. Its literals then equal more letters than its wildcards
     *     do: the path {@code /ſignin} reaches {@code /signin}, but doesn't match {@code /sign*}.
     */
    PolicyPaths(List<RequestPolicy> policies, boolean ignoresCase) {
        this.ignoresCase = ignoresCase;
        this.policies = List.copyOf(policies);
        Map<PathPattern, BitSet> inclusions = new LinkedHashMap<>();
        Map<PathPattern, BitSet> exclusions = new LinkedHashMap<>();
        for (int i = 0; i < policies.size(); i++) {
            RequestPolicy policy = policies.get(i);
            onAllPaths.set(i, policy.selection().paths().isEmpty());
            add(inclusions, policy.selection().paths(), i);
            add(exclusions, policy.selection().excludePaths(), i);
        }
        inclusions.forEach(included::add);
        exclusions.forEach(excluded::add);
    }

    private static void add(Map<PathPattern, BitSet> index, List<PathPattern> patterns, int policy) {
        for (PathPattern pattern : patterns) {
            index.computeIfAbsent(pattern, absent -> new BitSet()).set(policy);
        }
    }

    List<RequestPolicy> policies() {
        return policies;
    }

    /** Returns whether all policies cover all paths. */
    boolean isEmpty() {
        return included.isEmpty() && excluded.isEmpty();
    }

    /**
     * Returns the indexes of the policies that cover one of the paths that a request may mean: {@code /health/../rest/x}
     * must not pass for {@code /health/**} where another servlet gets it as {@code /rest/x}. All policies cover an
     * unreadable path.
     */
    BitSet covering(List<RequestPath> candidates) {
        BitSet covering = new BitSet(policies.size());
        if (candidates.isEmpty()) {
            covering.set(0, policies.size());
        }
        for (RequestPath path : candidates) {
            covering.or(covering(path));
            RequestPath folded = ignoresCase ? path.folded() : path;
            if (folded != path) {
                covering.or(covering(folded));
            }
        }
        return covering;
    }

    /**
     * Returns the policies that cover a path. A filter behind this one may drop a trailing slash, so it is ignored for
     * included paths. Exclusions match literally.
     */
    private BitSet covering(RequestPath path) {
        RequestPath shorter = path.withoutTrailingSlash();
        BitSet covering = (BitSet) onAllPaths.clone();
        included.candidates(path, pattern -> {
            if (pattern.matches(path) || shorter != path && pattern.matches(shorter)) {
                covering.or(pattern.value());
            }
        });
        if (!excluded.isEmpty()) {
            excluded.candidates(path, pattern -> {
                if (pattern.matches(path)) {
                    covering.andNot(pattern.value());
                }
            });
        }
        return covering;
    }
}
