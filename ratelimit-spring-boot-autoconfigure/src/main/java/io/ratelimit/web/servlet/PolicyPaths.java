package io.ratelimit.web.servlet;

import io.ratelimit.web.servlet.endpoint.PathIndex;
import io.ratelimit.web.servlet.endpoint.PathIndex.Entry;
import io.ratelimit.web.servlet.endpoint.RequestPath;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.springframework.web.util.pattern.PathPattern;

/** The policies that cover a path, found by an index of all their patterns. Immutable. */
final class PolicyPaths {

    private static final BitSet NONE = new BitSet(0);

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
     * unreadable path. The result must not be changed.
     */
    BitSet covering(List<RequestPath> candidates) {
        if (candidates.isEmpty()) {
            BitSet every = new BitSet();
            every.set(0, policies.size());
            return every;
        }
        BitSet covering = NONE;
        for (RequestPath path : candidates) {
            covering = union(covering, covering(path));
            RequestPath folded = ignoresCase ? path.folded() : path;
            covering = folded == path ? covering : union(covering, covering(folded));
        }
        return covering;
    }

    /**
     * Returns the policies that cover a path; it must not be changed. A filter behind this one may drop a trailing slash, so
     * it is ignored for included paths. Exclusions match literally.
     */
    private BitSet covering(RequestPath path) {
        Covering covering = new Covering(path, path.withoutTrailingSlash(), onAllPaths);
        included.candidates(path, covering);
        if (excluded.isEmpty()) {
            return covering.policies;
        }
        BitSet left = (BitSet) covering.policies.clone();
        excluded.candidates(path, pattern -> {
            if (pattern.matches(path)) {
                left.andNot(pattern.value());
            }
        });
        return left;
    }

    /** Returns the policies of both sets: one of these sets itself if the other is empty. */
    private static BitSet union(BitSet one, BitSet other) {
        if (one.isEmpty() || other.isEmpty()) {
            return one.isEmpty() ? other : one;
        }
        BitSet both = (BitSet) one.clone();
        both.or(other);
        return both;
    }

    /** Gathers the policies whose patterns match a path. Those of one pattern alone aren't copied: that costs more than to find them. */
    private static final class Covering implements Consumer<Entry<BitSet>> {

        private final RequestPath path;
        private final RequestPath shorter;
        private BitSet policies;
        private boolean isCopy;

        Covering(RequestPath path, RequestPath shorter, BitSet policies) {
            this.path = path;
            this.shorter = shorter;
            this.policies = policies;
        }

        @Override
        public void accept(Entry<BitSet> pattern) {
            if (pattern.matches(path) || shorter != path && pattern.matches(shorter)) {
                add(pattern.value());
            }
        }

        private void add(BitSet more) {
            if (policies.isEmpty()) {
                policies = more;
            } else {
                policies = isCopy ? policies : (BitSet) policies.clone();
                policies.or(more);
                isCopy = true;
            }
        }
    }
}
