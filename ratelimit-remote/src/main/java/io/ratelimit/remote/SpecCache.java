package io.ratelimit.remote;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/**
 * Values that are computed once for each spec. An application may change its limits as long as it runs, so the cache is
 * cleared when it is full: to compute a value again costs less than to track which specs are in use. Thread-safe.
 */
public final class SpecCache<S, T> {

    static final int MAX_SIZE = 10_000;

    private final Map<S, T> values = new ConcurrentHashMap<>();
    private final Function<S, T> compute;

    /** @param compute computes the value of a spec */
    public SpecCache(Function<S, T> compute) {
        this.compute = compute;
    }

    /** Returns the value of a spec. */
    public T get(S spec) {
        T value = values.get(spec);
        return value != null ? value : add(spec);
    }

    private T add(S spec) {
        if (values.size() >= MAX_SIZE) {
            values.clear();
        }
        return values.computeIfAbsent(spec, compute);
    }

    int size() {
        return values.size();
    }
}
