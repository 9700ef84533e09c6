package io.ratelimit.actuate;

import io.ratelimit.Throttler;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The keys that policies deny most, as they were lately: to find those of a policy that denies thousands takes a fraction
 * of a millisecond, so each refresh does what fits into one and the next goes on from there. Thread-safe.
 */
final class DeniedKeysCache {

    private static final long BUDGET_NANOS = 1_000_000;

    private final DeniedKeys deniedKeys;
    private final Map<String, List<DeniedKey>> tops = new ConcurrentHashMap<>();
    private int next;

    DeniedKeysCache(DeniedKeys deniedKeys) {
        this.deniedKeys = deniedKeys;
    }

    synchronized void refresh(Collection<Throttler> throttlers) {
        List<Throttler> all = new ArrayList<>(throttlers);
        long end = System.nanoTime() + BUDGET_NANOS;
        for (int i = 0; i < all.size() && System.nanoTime() - end < 0; i++) {
            next = (next + 1) % all.size();
            String policy = all.get(next).policy().name();
            tops.put(policy, deniedKeys.top(policy));
        }
    }

    List<DeniedKey> top(String policy) {
        return tops.getOrDefault(policy, List.of());
    }
}
