package io.ratelimit.remote.inflight;

import io.ratelimit.SharedSlots;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The calls in flight of this process, by policies and keys, with their registers at a store. Only keys with calls in flight,
 * and those of the last moments, take memory. While there are any, they are checked ten times a second. Thread-safe.
 */
public final class Registers {

    /** After this time the store drops the register of a process that doesn't renew it. */
    public static final Duration TIME_TO_LIVE = Duration.ofSeconds(10);

    private static final long TICK_NANOS = Duration.ofMillis(100).toNanos();

    private final TimeSource time;
    private final RegisterStore store;
    private final Access access;
    private final Duration timeToLive;
    private final Map<String, PolicyRegisters> policies = new ConcurrentHashMap<>();
    private final AtomicLong claims = new AtomicLong();
    private final AtomicBoolean ticking = new AtomicBoolean();

    /** The rules for calls of the store: deadline, circuit breaker and fallback. */
    public interface Access {

        /** Starts a call, unless the store is unavailable: then returns null. */
        @Nullable
        CompletableFuture<Reply> start(Supplier<CompletableFuture<Reply>> call);

        /** Returns whether a started call failed because of this process, and the store may well be healthy. */
        default boolean isCongestion(Throwable failure) {
            return false;
        }

        /** Returns the longest time of a call, in nanoseconds. */
        long timeoutNanos();

        /** Waits until a call of this thread is decided, at most for the time that the thread's request has left. */
        void await(Future<?> decision);

        /**
         * Returns how many calls of a key may run in this process while the store is unavailable; none if the policy denies all.
         *
         * @param congested whether the reason is this process, and the store may well be healthy
         */
        int fallback(ThrottlePolicy policy, int limit, boolean congested);
    }

    /** @param timeToLive the time after which the store drops a register that isn't renewed */
    public Registers(TimeSource time, RegisterStore store, Access access, Duration timeToLive) {
        this.time = time;
        this.store = store;
        this.access = access;
        this.timeToLive = timeToLive;
    }

    /** Returns the slots of a policy. Policies of the same name share them. */
    public SharedSlots of(ThrottlePolicy policy) {
        return policies.computeIfAbsent(policy.name(), name -> new PolicyRegisters(policy, this));
    }

    TimeSource time() {
        return time;
    }

    RegisterStore store() {
        return store;
    }

    Access access() {
        return access;
    }

    Duration timeToLive() {
        return timeToLive;
    }

    long nextClaim() {
        return claims.incrementAndGet();
    }

    /** Has the keys checked, after one was added. */
    void keyAdded() {
        if (!ticking.get() && ticking.compareAndSet(false, true)) {
            long due = time.nanoTime() + TICK_NANOS;
            time.maintainAt(due, () -> tick(due));
        }
    }

    private void tick(long due) {
        if (time.nanoTime() - due < 0) {
            return; // the clock was closed, and makes its calls early
        }
        try {
            policies.values().forEach(PolicyRegisters::tick);
        } finally {
            ticking.set(false);
            if (policies.values().stream().anyMatch(PolicyRegisters::isBusy)) {
                keyAdded();
            }
        }
    }
}
