package io.ratelimit.benchmarks;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.github.resilience4j.bulkhead.Bulkhead;
import io.github.resilience4j.bulkhead.BulkheadConfig;
import io.github.resilience4j.bulkhead.BulkheadRegistry;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** How many calls of a key run at a time: the floor, ours, and what others offer. A call takes a slot and releases it. */
public enum KeyedSlots {
    /** The floor: a map that never forgets, with a counter for each key. */
    MAP_OF_COUNTERS(KeyedSlots::mapOfCounters),
    /** Called as by the filter. */
    RATELIMIT(KeyedSlots::ratelimit),
    /** Written by hand. A semaphore that expires in use loses its count. */
    SEMAPHORE_IN_CAFFEINE(KeyedSlots::semaphoreInCaffeine),
    /** The registry never removes a bulkhead. */
    RESILIENCE4J_BULKHEAD(KeyedSlots::bulkhead);

    private static final int LIMIT = 16;

    private final Supplier<Predicate<String>> factory;

    KeyedSlots(Supplier<Predicate<String>> factory) {
        this.factory = factory;
    }

    /** Creates a limiter that takes a slot of a key, releases it, and returns whether there was one. */
    Predicate<String> create() {
        return factory.get();
    }

    private static Predicate<String> mapOfCounters() {
        ConcurrentMap<String, AtomicInteger> map = new ConcurrentHashMap<>();
        return key -> {
            AtomicInteger known = map.get(key);
            AtomicInteger counter = known != null ? known : map.computeIfAbsent(key, absent -> new AtomicInteger());
            boolean taken = take(counter);
            if (taken) {
                counter.decrementAndGet();
            }
            return taken;
        };
    }

    private static boolean take(AtomicInteger counter) {
        int seen = counter.get();
        while (seen < LIMIT && !counter.compareAndSet(seen, seen + 1)) {
            seen = counter.get();
        }
        return seen < LIMIT;
    }

    private static Predicate<String> ratelimit() {
        ThrottlePolicy configured = ThrottlePolicy.of("per-client", BucketSpec.inFlight(LIMIT), "client");
        Throttlers throttlers = Throttlers.local(List.of(configured));
        PolicyThrottler throttler = throttlers.get("per-client");
        return key -> {
            Decision decision = throttlers.decide(List.of(Charge.of(throttler.policy(), key, 1)));
            decision.release();
            return decision.allowed();
        };
    }

    private static Predicate<String> semaphoreInCaffeine() {
        Cache<String, Semaphore> cache =
                Caffeine.newBuilder().expireAfterAccess(Duration.ofMinutes(10)).build();
        return key -> {
            Semaphore semaphore = cache.get(key, absent -> new Semaphore(LIMIT));
            boolean taken = semaphore.tryAcquire();
            if (taken) {
                semaphore.release();
            }
            return taken;
        };
    }

    private static Predicate<String> bulkhead() {
        BulkheadRegistry registry = BulkheadRegistry.of(BulkheadConfig.custom()
                .maxConcurrentCalls(LIMIT)
                .maxWaitDuration(Duration.ZERO)
                .build());
        return key -> {
            Bulkhead bulkhead = registry.bulkhead(key);
            boolean taken = bulkhead.tryAcquirePermission();
            if (taken) {
                bulkhead.onComplete();
            }
            return taken;
        };
    }
}
