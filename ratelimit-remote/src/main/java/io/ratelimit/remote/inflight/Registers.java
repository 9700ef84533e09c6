package io.ratelimit.remote.inflight;

import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.SharedSlots;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
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

        /** Returns whether an earlier call of the store has failed for the request of this thread. */
        default boolean hasFailed() {
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
        return registers(policy);
    }

    private PolicyRegisters registers(ThrottlePolicy policy) {
        PolicyRegisters known = policies.get(policy.name());
        return known != null
                ? known
                : policies.computeIfAbsent(policy.name(), name -> new PolicyRegisters(policy, this));
    }

    /**
     * Decides the requests that need no claim of their own, and the others too unless a take of tokens can carry the claims.
     *
     * @param carry whether a take of tokens follows that carries claims if the store can
     * @return whether no request is denied
     */
    public boolean start(List<SharedSlots.Request> requests, boolean carry) {
        for (SharedSlots.Request request : requests) {
            PolicyRegisters registers = registers(request.charge().policy());
            if (request.slot() == null && !(carry && store.carriesClaims() && registers.needsClaim(request))) {
                request.take();
            }
            if (request.slot() != null && request.slot().outcome() != Outcome.ALLOWED) {
                return false;
            }
        }
        return true;
    }

    /** Makes the claims for requests that aren't decided yet, for {@link #take}. Leaves out keys with a claim under way. */
    public List<CarriedClaim> carry(List<SharedSlots.Request> requests) {
        List<CarriedClaim> claims = new ArrayList<>(requests.size());
        try {
            for (SharedSlots.Request request : requests) {
                CarriedClaim claim = request.slot() != null
                        ? null
                        : registers(request.charge().policy()).carry(request);
                if (claim != null) {
                    claims.add(claim);
                }
            }
            return claims;
        } catch (RuntimeException | Error failed) {
            claims.forEach(CarriedClaim::withdraw);
            throw failed;
        }
    }

    /** Takes tokens with claims. Each call with a claim is decided then, unless its claim was withdrawn. */
    public Decision take(List<Charge> charges, List<CarriedClaim> claims) {
        try {
            return store.take(charges, claims, timeToLive);
        } catch (RuntimeException | Error failed) {
            claims.forEach(claim -> claim.failed(access.isCongestion(failed)));
            throw failed;
        }
    }

    /**
     * Gives the slots back that are kept for later calls, and waits for the replies, but not longer than the given time. For
     * the end of a process: otherwise others would get these slots only when the registers run out.
     */
    public void giveBackKept(Duration atMost) {
        long end = System.nanoTime() + atMost.toNanos();
        List<CompletableFuture<Reply>> replies = new ArrayList<>();
        do {
            replies.clear();
            policies.values().forEach(policy -> policy.giveBackKept(replies));
        } while (await(replies, end));
    }

    /** Waits for replies, and returns whether there may be more of them to wait for. */
    private static boolean await(List<CompletableFuture<Reply>> replies, long end) {
        try {
            for (CompletableFuture<Reply> reply : replies) {
                reply.handle((granted, failure) -> true).get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            }
            return !replies.isEmpty() && end - System.nanoTime() > 0;
        } catch (TimeoutException | ExecutionException late) {
            return false;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
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

    /** Has the keys checked while there are any. Each call of a key asks for it, since a clock may have failed before. */
    void keyInUse() {
        if (!ticking.get() && ticking.compareAndSet(false, true)) {
            try {
                long due = time.nanoTime() + TICK_NANOS;
                time.maintainAt(due, () -> tick(due));
            } catch (RuntimeException | Error failed) {
                ticking.set(false);
                throw failed;
            }
        }
    }

    private void tickAgain() {
        try {
            keyInUse();
        } catch (RuntimeException | Error failed) {
            keyInUse(); // perhaps no other call follows
        }
    }

    private void tick(long due) {
        boolean early = false;
        try {
            early = time.nanoTime() - due < 0; // the clock was closed, and makes its calls early
            if (!early) {
                policies.values().forEach(PolicyRegisters::tick);
            }
        } finally {
            ticking.set(early);
            if (!early && policies.values().stream().anyMatch(PolicyRegisters::isBusy)) {
                tickAgain();
            }
        }
    }
}
