package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A flood that this process can't send to Redis in time, while Redis is healthy.
 *
 * <p>Each granted call was granted by exactly one of three: Redis, the local share, or the rule {@code allow}. A take that
 * was late here but executed in Redis only adds to the charges of Redis, so it reduces its grants; the share or the rule then
 * grants the call once. Redis grants at most the limit, and the share at most its capacity, plus the tokens that come back
 * during the test.
 *
 * <p>The rule {@code allow} grants a call only if Redis had half of the timeout and didn't answer, as it may on a machine
 * without a free processor. This is a failed call and no congestion, so it is no part of the bound. It must be rare: at most one call
 * in a hundred. Under the other rules no call is granted this way.
 */
@Tag("slow")
@Tag("timed")
class RedisFloodTests {

    private static final int LIMIT = 2_000;
    private static final int THREADS = 300;
    private static final int CALLS = 200;

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    private RedisApplication application(String strategy, String rule) {
        return RedisApplication.start(redis.port(), """
                ratelimit:
                  backend: redis
                  on-backend-failure: %s
                  redis: { strategy: %s, local-share: 0.1, timeout: 300ms }
                  policies:
                    flooded: { rate: %d/1d, paths: /flooded }
                """.formatted(rule, strategy, LIMIT));
    }

    /** The whole tokens that come back within a time, at so many a day. */
    private static long refilled(long perDay, Duration elapsed) {
        return perDay * elapsed.toMillis() / Duration.ofDays(1).toMillis();
    }

    private static void flood(Runnable client) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        List<Future<?>> clients = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            clients.add(threads.submit(client));
        }
        threads.shutdown();
        for (Future<?> one : clients) {
            one.get(60, TimeUnit.SECONDS);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "script, allow, 200",
        "transaction, allow, 200",
        "script, local, 200",
        "transaction, local, 200",
        "script, deny, 0",
        "transaction, deny, 0"
    })
    void aFloodIsGrantedNoMoreThanTheLimitAndTheLocalShare(String strategy, String rule, long share) throws Exception {
        try (RedisApplication application = application(strategy, rule)) {
            Throttler flooded = application.bean(Throttlers.class).global("flooded");
            Backend backend = application.bean(Backend.class);
            var seen = ConcurrentHashMap.<Condition>newKeySet();
            LongAdder called = new LongAdder();
            backend.addListener((nanos, failed) -> called.increment());
            LongAdder byRedis = new LongAdder();
            LongAdder byShare = new LongAdder();
            LongAdder byRule = new LongAdder();
            Runnable client = () -> {
                for (int call = 0; call < CALLS; call++) {
                    Decision decision = flooded.decide(1);
                    if (decision.allowed()) {
                        Answer answer = decision.answers().get(0);
                        boolean fromBucket = answer.receipt() != null;
                        (!answer.fallback() ? byRedis : fromBucket ? byShare : byRule).increment();
                    }
                    seen.add(backend.state().condition());
                }
            };
            long began = System.nanoTime();
            flood(client);
            Duration elapsed = Duration.ofNanos(System.nanoTime() - began);

            assertThat(byRedis.sum()).as("granted by Redis").isBetween(1L, LIMIT + refilled(LIMIT, elapsed));
            assertThat(byShare.sum())
                    .as("granted by the local share")
                    .isLessThanOrEqualTo(share + refilled(share, elapsed));
            assertThat(byRule.sum())
                    .as("granted without tokens, of %s calls of Redis", called)
                    .isLessThanOrEqualTo(rule.equals("allow") ? 5 + called.sum() / 100 : 0);
            assertThat(seen).containsExactly(Condition.UP);
        }
    }
}
