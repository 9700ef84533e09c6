package io.ratelimit.redis;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/**
 * What follows from a spec, worked out once. An application may change its limits for as long as it runs, so of very many
 * specs all are forgotten at times: to work them out again costs less than to know which are in use. Thread-safe.
 */
final class PerSpec<S, T> {

    static final int MOST = 10_000;

    private final Map<S, T> known = new ConcurrentHashMap<>();
    private final Function<S, T> work;

    PerSpec(Function<S, T> work) {
        this.work = work;
    }

    T of(S spec) {
        T seen = known.get(spec);
        return seen != null ? seen : ofNew(spec);
    }

    private T ofNew(S spec) {
        if (known.size() >= MOST) {
            known.clear();
        }
        return known.computeIfAbsent(spec, work);
    }

    int size() {
        return known.size();
    }
}
