package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.GrantOracle;
import io.ratelimit.redis.JointHistory.Event;
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
 * in memory and on a real Redis, with waits and leases. Calls are settled and given back, limits change, buckets are reset,
 * Redis fails, and clocks are wrong and step. A {@link GrantOracle} checks the grants of each bucket. In a history without
 * faults it also checks each answer of a bucket that has one spec. The number of a history is its seed.
 * {@code -Dratelimit.test.steps=1000000} sets the number of steps.
 *
 * <p>The oracles complete each other. These planted defects were noticed at the default numbers of steps:
 *
 * <table>
 *   <caption>Defects, and the oracles that notice them</caption>
 *   <tr><td>a call gets one tick too many back, in memory</td>
 *       <td>{@code TokenBucketOracleTests}, {@code LocalBucketStoreOracleTests}, this one</td></tr>
 *   <tr><td>the same where time has paid a part of the price</td><td>{@code TokenBucketOracleTests}</td></tr>
 *   <tr><td>a changed limit brings one batch more, in memory</td>
 *       <td>{@code TokenBucketOracleTests}, {@code LocalBucketStoreOracleTests}</td></tr>
 *   <tr><td>a changed limit doesn't reduce the next batch, on Redis</td>
 *       <td>{@link RedisOracleTests}, {@link RedisCalendarOracleTests}, this one</td></tr>
 *   <tr><td>a batch that ends a debt is there before it, on Redis</td>
 *       <td>{@link RedisOracleTests}, {@link RedisCalendarOracleTests}</td></tr>
 *   <tr><td>tokens taken before a conversion come back, on Redis</td>
 *       <td>{@link RedisOracleTests}, {@link RedisCalendarOracleTests}</td></tr>
 *   <tr><td>a lease holds no tokens of its bucket</td><td>{@link LeaseOracleTests}, this one</td></tr>
 *   <tr><td>the tokens of a lease return before its end</td><td>{@link LeaseOracleTests}</td></tr>
 *   <tr><td>tokens from before a reset come back, on Redis</td>
 *       <td>{@link RedisOracleTests}, {@link RedisCalendarOracleTests}, {@link LeaseOracleTests}, this one</td></tr>
 *   <tr><td>the same in memory</td><td>{@code LocalBucketStoreOracleTests}</td></tr>
 * </table>
 */
class JointOracleTests {

    private static final int THREADS = 8;

    private final Map<Event, LongAdder> events = new EnumMap<>(Event.class);

    @Test
    void noBucketInMemoryOrOnRedisGrantsMoreThanItPromises() throws Exception {
        Stream.of(Event.values()).forEach(event -> events.put(event, new LongAdder()));
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            List<Future<?>> histories = new ArrayList<>();
            for (int i = 1; i <= GrantOracle.steps(6_000) / JointHistory.STEPS; i++) {
                int seed = i;
                histories.add(threads.submit(() -> new JointHistory(seed, events).run()));
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
