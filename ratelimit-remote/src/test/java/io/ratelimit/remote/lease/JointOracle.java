package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.GrantOracle;
import io.ratelimit.remote.lease.JointHistory.Event;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Runs histories in which everything that changes a bucket occurs together. Requests take from buckets of every kind at once,
 * in memory and in a remote store, with waits and leases. Calls are settled and given back, limits change, buckets are reset,
 * the store fails, and clocks are wrong and step. A {@link GrantOracle} checks the grants of each bucket. In a history without
 * faults it also checks each answer of a bucket that has one spec. The number of a history is its seed.
 * {@code -Dratelimit.test.steps=1000000} sets the number of steps.
 */
public abstract class JointOracle {

    private static final int THREADS = 8;

    private final Map<Event, LongAdder> events = new EnumMap<>(Event.class);

    /** Returns a place that has no bucket. */
    protected abstract LeasePlace place();

    @Test
    void noBucketInMemoryOrRemoteGrantsMoreThanItPromises() throws Exception {
        Stream.of(Event.values()).forEach(event -> events.put(event, new LongAdder()));
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            List<Future<?>> histories = new ArrayList<>();
            for (int i = 1; i <= GrantOracle.steps(6_000) / JointHistory.STEPS; i++) {
                int seed = i;
                histories.add(threads.submit(() -> new JointHistory(seed, place(), events).run()));
            }
            for (Future<?> history : histories) {
                history.get();
            }
        } finally {
            threads.shutdownNow();
        }
        assertThat(events.values()).as(events.toString()).allSatisfy(count -> assertThat(count.sum())
                .isPositive());
    }
}
