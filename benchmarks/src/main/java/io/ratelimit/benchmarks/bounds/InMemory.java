package io.ratelimit.benchmarks.bounds;

import com.github.benmanes.caffeine.cache.Caffeine;
import com.google.common.util.concurrent.RateLimiter;
import io.github.bucket4j.Bucket;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.TokensInheritanceStrategy;
import io.github.bucket4j.caffeine.CaffeineProxyManager;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.distributed.remote.RemoteBucketState;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import io.github.resilience4j.ratelimiter.RateLimiterRegistry;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.GlobalThrottler;
import io.ratelimit.Rate;
import io.ratelimit.Shares;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** Limiters in the memory of a process, as their documentation makes them. */
final class InMemory {

    /** The most keys that a limiter keeps, where it has such a bound. */
    static final int MAX_KEYS = 1_000;

    private static final String POLICY = "bounds";
    private static final int TENANTS = 5;

    private InMemory() {}

    static BucketConfiguration bucket4jConfiguration(Limit limit) {
        return BucketConfiguration.builder()
                .addLimit(bandwidth -> bandwidth.capacity(limit.tokens()).refillGreedy(limit.tokens(), limit.period()))
                .build();
    }

    static Instance bucket4j(Limit limit) {
        Bucket bucket = Bucket.builder()
                .addLimit(bandwidth -> bandwidth.capacity(limit.tokens()).refillGreedy(limit.tokens(), limit.period()))
                .build();
        return new Instance() {
            @Override
            public boolean allows(String key) {
                return bucket.tryConsume(1);
            }

            @Override
            public void change(Limit next) {
                bucket.replaceConfiguration(bucket4jConfiguration(next), TokensInheritanceStrategy.AS_IS);
            }
        };
    }

    @SuppressWarnings({"unchecked", "rawtypes", "deprecation"})
    static Instance bucket4jWithKeys(Limit limit) {
        Caffeine<String, RemoteBucketState> cache =
                (Caffeine) Caffeine.newBuilder().maximumSize(MAX_KEYS);
        return bucket4j(new CaffeineProxyManager<>(cache, Duration.ofMinutes(1)), limit);
    }

    /** Returns a limiter whose buckets are in a proxy manager. */
    static Instance bucket4j(ProxyManager<String> manager, Limit limit) {
        BucketConfiguration configuration = bucket4jConfiguration(limit);
        return new Instance() {
            @Override
            public boolean allows(String key) {
                return manager.getProxy(key, () -> configuration).tryConsume(1);
            }

            @Override
            public void change(Limit next) {
                manager.getProxy(Situation.KEY, () -> configuration)
                        .replaceConfiguration(bucket4jConfiguration(next), TokensInheritanceStrategy.AS_IS);
            }
        };
    }

    static Instance resilience4j(Limit limit) {
        RateLimiterRegistry registry = RateLimiterRegistry.of(RateLimiterConfig.custom()
                .limitForPeriod(limit.tokens())
                .limitRefreshPeriod(limit.period())
                .timeoutDuration(Duration.ZERO)
                .build());
        return new Instance() {
            @Override
            public boolean allows(String key) {
                return registry.rateLimiter(key).acquirePermission();
            }

            @Override
            public void change(Limit next) {
                registry.rateLimiter(Situation.KEY).changeLimitForPeriod(next.tokens());
            }
        };
    }

    @SuppressWarnings("UnstableApiUsage")
    static Instance guava(Limit limit) {
        RateLimiter limiter = RateLimiter.create(limit.perSecond());
        return new Instance() {
            @Override
            public boolean allows(String key) {
                return limiter.tryAcquire();
            }

            @Override
            public void change(Limit next) {
                limiter.setRate(next.perSecond());
            }
        };
    }

    static Instance ours(Limit limit) {
        TimeSource time = TimeSource.system();
        return ours(limit, BucketStore.local(time), Duration.ZERO);
    }

    /** Returns a policy of ratelimit on a store. */
    static Instance ours(Limit limit, BucketStore store, Duration lease) {
        ThrottlePolicy policy = ThrottlePolicy.of(POLICY, spec(limit), "key")
                .withMaxKeys(MAX_KEYS)
                .withLease(lease);
        Throttlers throttlers = new Throttlers(List.of(policy), store, TimeSource.system(), ThrottleListener.NONE);
        return new Instance() {
            @Override
            public boolean allows(String key) {
                return throttlers.get(POLICY).forKey(key).decide(1).allowed();
            }

            @Override
            public void change(Limit next) {
                throttlers.get(POLICY).reconfigure(spec(next));
            }
        };
    }

    /** Returns a limit that five tenants share. They ask in turns, and each has 4 % of the limit to itself. */
    static Instance oursWithShares(Limit limit) {
        Rate lane = new Rate(limit.tokens() / 25, limit.period());
        ThrottlePolicy policy = ThrottlePolicy.of(POLICY, spec(limit))
                .withShares(Shares.forKeys(BucketSpec.of(lane), TENANTS, List.of("tenant")));
        TimeSource time = TimeSource.system();
        Throttlers throttlers = new Throttlers(List.of(policy), BucketStore.local(time), time, ThrottleListener.NONE);
        GlobalThrottler throttler = throttlers.global(POLICY);
        return new Instance() {
            @Override
            public boolean allows(String key) {
                String tenant = "tenant" + ThreadLocalRandom.current().nextInt(TENANTS);
                return throttler.guaranteedTo(tenant).decide(1).allowed();
            }

            @Override
            public void change(Limit next) {
                throttler.reconfigure(spec(next));
            }
        };
    }

    private static BucketSpec spec(Limit limit) {
        return new BucketSpec(new Rate(limit.tokens(), limit.period()), limit.tokens(), BucketSpec.Refill.GREEDY);
    }
}
