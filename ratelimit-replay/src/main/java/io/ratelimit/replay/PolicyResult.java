package io.ratelimit.replay;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The decisions of one policy. An array has one number for the requests spread evenly over each second, at index
 * {@link #SPREAD}, and one for all requests of a second at its start, at index {@link #AT_ONCE}.
 */
final class PolicyResult {

    static final int SPREAD = 0;
    static final int AT_ONCE = 1;

    private static final int MAX_DENIED_KEYS = 20_000;

    final ThrottlePolicy policy;
    final long[] decided = new long[2];
    final long[] denied = new long[2];
    final KeyTable keys = new KeyTable();

    /** The outcomes of denied requests, for {@link #AT_ONCE}. */
    final Map<Outcome, Long> outcomes = new EnumMap<>(Outcome.class);

    /** The facts that a log doesn't contain, with the number of requests that need them. */
    final Map<String, Long> unlogged = new TreeMap<>();

    long undecided;
    long overflows;

    /** The requests whose tokens would come back by a status that the log lacks. */
    long withoutStatus;

    final int bin;
    private final Map<String, DeniedKey> deniedKeys = new HashMap<>();
    private long forgottenCount;

    /** A key and the number of its denied requests, for {@link #AT_ONCE}. */
    static final class DeniedKey {
        final String name;
        final long first;
        long last;
        long count;

        private DeniedKey(String name, long first, long count) {
            this.name = name;
            this.first = first;
            this.count = count;
        }
    }

    /** @param bin the policy's place in the bins of denied requests */
    PolicyResult(ThrottlePolicy policy, int bin) {
        this.policy = policy;
        this.bin = bin;
    }

    void countUndecided(Set<String> facts) {
        undecided++;
        facts.forEach(fact -> unlogged.merge(fact, 1L, Long::sum));
    }

    void count(int arrangement, Answer answer, LogEntry entry, Bins bins) {
        decided[arrangement]++;
        boolean allowed = answer.allowed();
        keys.add(answer.charge().key(), allowed ? 0 : 1 << arrangement);
        if (!allowed) {
            denied[arrangement]++;
            if (arrangement == AT_ONCE) {
                outcomes.merge(answer.outcome(), 1L, Long::sum);
                bins.add(bin, entry.startNanos);
                if (!policy.isGlobal()) {
                    countDenied(answer.charge().key(), entry);
                }
            }
        }
    }

    /** Bounds the memory by forgetting the keys with the fewest denials; a key that returns inherits their count. */
    private void countDenied(String key, LogEntry entry) {
        DeniedKey denied = deniedKeys.get(key);
        if (denied == null) {
            if (deniedKeys.size() >= MAX_DENIED_KEYS) {
                List<Long> counts = deniedKeys.values().stream()
                        .map(each -> each.count)
                        .sorted()
                        .toList();
                forgottenCount = counts.get(MAX_DENIED_KEYS / 2);
                deniedKeys.values().removeIf(each -> each.count <= forgottenCount);
            }
            denied = new DeniedKey(name(key, entry), entry.startNanos, forgottenCount);
            deniedKeys.put(key, denied);
        }
        denied.count++;
        denied.last = entry.startNanos;
    }

    /** Returns a key as people read it, with the name of a host in place of the address that replaced it. */
    private String name(String key, LogEntry entry) {
        String host = entry.host == null || !LoggedRequest.isName(entry.host) ? null : entry.host;
        List<String> names = new ArrayList<>();
        for (String part : Keys.parts(key)) {
            boolean address =
                    Keys.isPlaceholder(part) || policy.key().get(names.size()).equals("ip");
            String text = Keys.text(part);
            names.add(text.isEmpty() ? "none" : host != null && address && text.startsWith("f") ? host : text);
        }
        return String.join(", ", names) + (Keys.tier(key).isEmpty() ? "" : " (" + Keys.tier(key) + ")");
    }

    /** Returns the keys with the most denied requests. Their counts may be too high if there were very many. */
    List<DeniedKey> deniedMost(int limit) {
        return deniedKeys.values().stream()
                .sorted(Comparator.comparingLong((DeniedKey key) -> -key.count).thenComparing(key -> key.name))
                .limit(limit)
                .toList();
    }

    boolean countsAreExact() {
        return forgottenCount == 0;
    }

    /**
     * Returns the facts that the log lacks, such as {@code header X-Api-Key (12 requests)}; null if it lacks nothing.
     */
    @Nullable
    String lacks() {
        return unlogged.isEmpty()
                ? null
                : unlogged.entrySet().stream()
                        .map(fact -> fact.getKey() + " (" + Findings.count(fact.getValue(), "request") + ")")
                        .collect(Collectors.joining(", "));
    }
}
