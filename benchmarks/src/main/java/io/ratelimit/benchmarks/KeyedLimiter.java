package io.ratelimit.benchmarks;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.google.common.util.concurrent.RateLimiter;
import io.github.bucket4j.Bucket;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.caffeine.Bucket4jCaffeine;
import io.github.bucket4j.caffeine.CaffeineProxyManager;
import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.resilience4j.ratelimiter.RateLimiterRegistry;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * A bucket for each key, created when the key is first seen: the floor, ours, and what others offer or recommend. All
 * give each key a million tokens a second and a million at once, more than a run takes.
 */
public enum KeyedLimiter {
    /** The floor: a map that never forgets, with the least that could be a bucket, and true or false as the result. */
    MAP_OF_LONGS(KeyedLimiter::mapOfLongs),
    /** Called as by the filter. */
    RATELIMIT(KeyedLimiter::ratelimit),
    /** Written by hand, as bucket4j's documentation recommends for local buckets. */
    BUCKET4J_IN_CAFFEINE(KeyedLimiter::bucket4jInCaffeine),
    /** The Caffeine module of bucket4j. */
    BUCKET4J_CAFFEINE_MODULE(KeyedLimiter::bucket4jCaffeineModule),
    /** Written by hand: Guava's limiter has no keys. */
    GUAVA_IN_CAFFEINE(KeyedLimiter::guavaInCaffeine),
    /** The registry never removes a limiter. */
    RESILIENCE4J_REGISTRY(KeyedLimiter::resilience4jRegistry);

    private static final int RATE = 1_000_000;
    private static final long NANOS_PER_TOKEN = 1_000_000_000L / RATE;
    private static final int CAPACITY = 1_000_000;
    private static final int MAX_KEYS = 2_000_000;

    private final Supplier<Predicate<String>> factory;

    KeyedLimiter(Supplier<Predicate<String>> factory) {
        this.factory = factory;
    }

    /** Creates a limiter that returns whether the call of a key is allowed. */
    Predicate<String> create() {
        return factory.get();
    }

    private static BucketSpec spec() {
        return BucketSpec.of(RATE + "/1s").withCapacity(CAPACITY);
    }

    private static Predicate<String> mapOfLongs() {
        ConcurrentMap<String, AtomicLong> map = new ConcurrentHashMap<>();
        return key -> {
            AtomicLong fullAt = map.get(key);
            return take(fullAt != null ? fullAt : map.computeIfAbsent(key, absent -> new AtomicLong()));
        };
    }

    private static boolean take(AtomicLong fullAt) {
        long now = System.nanoTime();
        while (true) {
            long seen = fullAt.get();
            long next = Math.max(seen, now) + NANOS_PER_TOKEN;
            if (next - now > CAPACITY * NANOS_PER_TOKEN) {
                return false;
            }
            if (fullAt.weakCompareAndSetVolatile(seen, next)) {
                return true;
            }
        }
    }

    private static Predicate<String> ratelimit() {
        ThrottlePolicy policy =
                ThrottlePolicy.of("per-client", spec(), "client").withMaxKeys(MAX_KEYS);
        Throttlers throttlers = Throttlers.local(List.of(policy));
        return key -> throttlers.decide(List.of(Charge.of(policy, key, 1))).allowed();
    }

    private static Predicate<String> bucket4jInCaffeine() {
        Cache<String, Bucket> cache = Caffeine.newBuilder()
                .expireAfterAccess(Duration.ofHours(1))
                .maximumSize(MAX_KEYS)
                .build();
        return key -> cache.get(key, absent -> Peers.bucket4j(CAPACITY, RATE, Duration.ofSeconds(1)))
                .tryConsume(1);
    }

    private static Predicate<String> bucket4jCaffeineModule() {
        BucketConfiguration configuration = BucketConfiguration.builder()
                .addLimit(limit -> limit.capacity(CAPACITY).refillGreedy(RATE, Duration.ofSeconds(1)))
                .build();
        CaffeineProxyManager<String> manager = Bucket4jCaffeine.<String>builderFor(
                        Caffeine.newBuilder().maximumSize(MAX_KEYS))
                .expirationAfterWrite(
                        ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(Duration.ofMinutes(1)))
                .build();
        return key -> manager.getProxy(key, () -> configuration).tryConsume(1);
    }

    private static Predicate<String> guavaInCaffeine() {
        Cache<String, RateLimiter> cache = Caffeine.newBuilder()
                .expireAfterAccess(Duration.ofHours(1))
                .maximumSize(MAX_KEYS)
                .build();
        return key -> cache.get(key, absent -> RateLimiter.create(RATE)).tryAcquire();
    }

    private static Predicate<String> resilience4jRegistry() {
        RateLimiterRegistry registry =
                RateLimiterRegistry.of(Peers.resilience4jConfig(CAPACITY, Duration.ofSeconds(1)));
        return key -> registry.rateLimiter(key).acquirePermission();
    }
}
