package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.DashboardData.Change;
import io.ratelimit.actuate.DashboardData.PolicyData;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Reads what the dashboard shows of all policies; asks no backend for it, so it is quick whatever those do. */
public final class DashboardReader {

    private final String instance = UUID.randomUUID().toString();
    private final Throttlers throttlers;
    private final DecisionHistory history;
    private final DeniedKeysCache deniedKeys;
    private final @Nullable Backend backend;
    private final Predicate<ThrottlePolicy> elsewhere;

    /**
     * @param backend outside of this process, if there is one
     * @param elsewhere which policies have their buckets not in this process
     */
    public DashboardReader(
            Throttlers throttlers,
            DecisionHistory history,
            DeniedKeys deniedKeys,
            @Nullable Backend backend,
            Predicate<ThrottlePolicy> elsewhere) {
        this.throttlers = throttlers;
        this.history = history;
        this.deniedKeys = new DeniedKeysCache(deniedKeys);
        this.backend = backend;
        this.elsewhere = elsewhere;
    }

    /** Everything as it is now, and of the past what came after the given second. */
    DashboardData read(long since, Change change, boolean showKeys) {
        long second = history.second();
        long first = Math.max(second - DecisionHistory.SECONDS, 0);
        long from = since > second ? first : Math.max(since, first);
        deniedKeys.refresh(throttlers.all());
        return new DashboardData(
                instance,
                second,
                from,
                DecisionHistory.SECONDS,
                change,
                backend == null ? List.of() : List.of(BackendView.of(backend)),
                throttlers.all().stream()
                        .map(throttler -> policy(throttler, from, second, showKeys))
                        .toList());
    }

    private PolicyData policy(Throttler throttler, long from, long second, boolean showKeys) {
        ThrottlePolicy policy = throttler.policy();
        boolean lastSeen = elsewhere.test(policy);
        return new PolicyData(
                policy.name(),
                Spelling.of(policy.mode()),
                policy.key(),
                policy.spec().rate().toString(),
                policy.spec().capacity(),
                texts(policy.tiers()),
                policy.isGlobal() ? available(throttler, lastSeen) : null,
                lastSeen,
                throttlers.waiting(policy.name()),
                policy.waiting().maxWait().isZero() ? 0 : policy.waiting().queueLimit(),
                history.counts(policy.name(), DecisionKind.ALLOWED, from, second),
                history.counts(policy.name(), DecisionKind.DENIED, from, second),
                history.counts(policy.name(), DecisionKind.SHADOW_DENIED, from, second),
                history.counts(policy.name(), DecisionKind.FAILED, from, second),
                keys(policy, showKeys));
    }

    private static Map<String, String> texts(Map<String, BucketSpec> tiers) {
        Map<String, String> texts = new TreeMap<>();
        tiers.forEach((tier, spec) -> texts.put(tier, spec.toString()));
        return texts;
    }

    private @Nullable Long available(Throttler throttler, boolean lastSeen) {
        if (lastSeen) {
            long level = history.level(throttler.policy().name());
            return level < 0 ? null : level;
        }
        try {
            return throttler.snapshot().available();
        } catch (BackendException unseen) {
            return null;
        }
    }

    private List<PolicyView.Denied> keys(ThrottlePolicy policy, boolean shown) {
        return deniedKeys.top(policy.name()).stream()
                .map(denied -> PolicyViews.denied(policy, denied, shown))
                .toList();
    }
}
