package io.ratelimit.remote.inflight;

import io.ratelimit.BackendException;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.SharedSlots;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeoutException;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A key in use: its register, and the calls that have no slot yet. At most one claim is under way; calls that come meanwhile
 * share the next one. Claims are sent without the lock, and their replies come on a thread of the store. Thread-safe.
 *
 * <p>A key that was busy in the last moments keeps up to a sixteenth of the slots, so that most calls need no claim. A claim
 * asks for half of these beyond the calls, and one that gives slots back is sent when there are more. While slots are scarce, one
 * is kept at most, since other processes need them.
 */
final class BusyKey {

    private static final int KEPT_PART = 16;
    private static final int LOST_TIMEOUTS = 10;
    private static final long RETRY_NANOS = Duration.ofSeconds(1).toNanos();
    private static final long WAIT_NANOS = Duration.ofMillis(40).toNanos();
    private static final long WAIT_JITTER_NANOS = Duration.ofMillis(20).toNanos();

    private final String key;
    private final PolicyRegisters policy;
    private final TimeSource time;
    private final long lifetime;
    private final long timeout;
    private final Register register;
    private final CallQueue queue = new CallQueue();
    private int limit;
    private int others;
    private int peak;
    private boolean scarce; // whether the last claim got fewer slots than it wanted
    private boolean failed; // the last claim; the store may have another number than this process
    private int failures; // the last claims that were sent and failed
    private long retryAt;
    private volatile @Nullable CompletableFuture<Reply> reply;
    private volatile boolean closed;

    BusyKey(String key, PolicyRegisters policy, Registers registers) {
        this.key = key;
        this.policy = policy;
        this.time = registers.time();
        this.lifetime = registers.timeToLive().toNanos();
        this.timeout = registers.access().timeoutNanos();
        this.register = new Register(registers.timeToLive());
        this.retryAt = time.nanoTime();
    }

    synchronized int running() {
        return register.running;
    }

    synchronized int queued() {
        return queue.size();
    }

    /**
     * Decides a call, or lets it join the queue.
     *
     * @param waits whether the call waits for a slot, and not for the next reply only
     * @return null if this key isn't in use any more
     */
    @Nullable
    SlotCall enter(IntSupplier limit, boolean waits) {
        SlotCall call = new SlotCall(this, limit, waits);
        try {
            Claim claim;
            synchronized (this) {
                if (closed) {
                    return null;
                }
                long now = time.nanoTime();
                this.limit = limit.getAsInt();
                if (!queue.isEmpty() || !start(call, now)) {
                    if (!waits && !queue.isEmpty() && register.awaited == 0) {
                        call.decide(Outcome.TOO_MANY_IN_FLIGHT, false, free()); // the calls that wait go first
                    } else {
                        queue.join(call);
                    }
                }
                claim = next(now);
            }
            proceed(claim);
            return call;
        } catch (RuntimeException | Error failed) {
            call.abandoned = true; // if there is no stack left for more
            withdraw(call);
            throw failed;
        }
    }

    boolean isClosed() {
        return closed;
    }

    synchronized boolean needsClaim(int limit) {
        return closed || register.awaited == 0 && queue.isEmpty() && !register.hasFree(limit - others, time.nanoTime());
    }

    /**
     * Makes a claim for one call, which a take of tokens carries. The caller completes the claim.
     *
     * @return null if the call needs another claim, since one is under way or other calls wait
     */
    @Nullable
    CarriedClaim carry(BucketName name, IntSupplier limit, SharedSlots.Request request) {
        synchronized (this) {
            if (closed || !needsClaim(limit.getAsInt())) {
                return null;
            }
            long now = time.nanoTime();
            SlotCall call = new SlotCall(this, limit, false);
            this.limit = limit.getAsInt();
            queue.join(call);
            reply = null; // the caller ends the claim, also if it is late
            request.decide(call);
            return new CarriedClaim(name, claim(now), this, request);
        }
    }

    /** Ends a carried claim that the store left out. Its call is undecided then, unless another call has released a slot. */
    void withdraw(Claim withdrawn, SharedSlots.Request request) {
        Claim claim;
        synchronized (this) {
            if (register.awaited == withdrawn.number()) {
                register.withdraw();
            }
            if (request.slot() instanceof SlotCall call && queue.leave(call)) {
                request.decide(null);
            }
            claim = renewalOrNext(time.nanoTime());
        }
        proceed(claim);
    }

    /** Takes out a call whose caller gets an exception in place of it. */
    synchronized void withdraw(SlotCall call) {
        queue.leave(call);
        register.end(call);
    }

    private boolean start(SlotCall call, long now) {
        if (call.abandoned) {
            return true;
        }
        call.counted = call.counted || register.start(call.limit.getAsInt() - others, now);
        if (call.counted) {
            started(call, false);
        }
        return call.counted;
    }

    private void started(SlotCall call, boolean fallback) {
        peak = Math.max(peak, register.running);
        call.decide(Outcome.ALLOWED, fallback, free());
    }

    private int free() {
        return Math.max(0, limit - others - register.running);
    }

    /** Starts calls of the queue in their order, as far as there are slots. */
    private void serve(long now) {
        while (!queue.isEmpty() && start(queue.first(), now)) {
            queue.leave(queue.first());
        }
    }

    /** Denies a call, unless it waits for a slot. */
    private boolean denyAsking(SlotCall call) {
        if (!call.waits) {
            call.decide(Outcome.TOO_MANY_IN_FLIGHT, false, free());
        }
        return !call.waits;
    }

    /** Decides a call by the rule for a failed backend. Returns false if the call waits on. */
    private boolean decideByRule(SlotCall call, boolean congested) {
        if (call.abandoned) {
            return true;
        }
        int most = policy.fallback(call.limit.getAsInt(), congested);
        if (register.running < most) {
            register.startWithout();
            call.counted = true;
            started(call, true);
        } else if (!call.waits) {
            call.decide(most == 0 ? Outcome.BACKEND_FAILED : Outcome.TOO_MANY_IN_FLIGHT, true, free());
        }
        return call.isDone();
    }

    void release(SlotCall call) {
        Claim claim;
        synchronized (this) {
            register.end(call); // before the clock is read, since a clock may throw
            long now = time.nanoTime();
            serve(now);
            claim = next(now);
        }
        proceed(claim);
    }

    void giveUp(SlotCall call) {
        Claim claim;
        synchronized (this) {
            if (!queue.leave(call)) {
                return;
            }
            call.decide(Outcome.TOO_MANY_IN_FLIGHT, false, free());
            claim = next(time.nanoTime());
        }
        proceed(claim);
    }

    void endAsking(SlotCall call, boolean congested) {
        endLateClaim();
        Claim claim;
        synchronized (this) {
            if (!queue.leave(call)) {
                return;
            }
            decideByRule(call, congested);
            claim = next(time.nanoTime());
        }
        proceed(claim);
    }

    /**
     * Ends a claim whose reply is late, as if it had failed. One that stays under way was lost: an error, such as one for want
     * of stack or memory, kept it from being sent or its reply from being read.
     */
    private void endLateClaim() {
        CompletableFuture<Reply> late;
        synchronized (this) {
            long age = register.awaited == 0 ? 0 : time.nanoTime() - register.sentAt;
            late = age >= timeout ? reply : null;
            if (age / LOST_TIMEOUTS >= timeout && (late == null || late.isDone())) {
                failed = true;
                register.gaveUp();
            }
        }
        if (late != null) {
            late.completeExceptionally(new BackendException("no answer in time", new TimeoutException()));
        }
    }

    /** Renews the register, gives back slots that were kept, and ends a late claim. */
    void tick() {
        endLateClaim();
        Claim claim;
        synchronized (this) {
            claim = renewalOrNext(time.nanoTime());
            peak = register.running;
        }
        proceed(claim);
    }

    /** Gives the kept slots back. Returns the reply that this waits for; null if there is none. */
    @Nullable
    CompletableFuture<Reply> giveBackKept() {
        Claim claim;
        synchronized (this) {
            peak = 0;
            claim = next(time.nanoTime());
        }
        proceed(claim);
        synchronized (this) {
            return register.awaited == 0 ? null : reply;
        }
    }

    /** Claims slots for the calls that wait for longer than a reply. */
    private void retry(long due) {
        Claim claim;
        synchronized (this) {
            long now = time.nanoTime();
            if (now - due < 0) {
                return; // the clock was closed, and makes its calls early
            }
            serve(now);
            if (!queue.isEmpty()) {
                limit = queue.first().limit.getAsInt();
            }
            retryLater(now);
            claim = queue.isEmpty() || register.awaited != 0 ? next(now) : claim(now);
        }
        proceed(claim);
    }

    private void retryLater(long now) {
        if (queue.hasWaiting() && now - retryAt >= 0) {
            long due = now + WAIT_NANOS + ThreadLocalRandom.current().nextLong(WAIT_JITTER_NANOS);
            retryAt = due;
            time.maintainAt(due, () -> retry(due));
        }
    }

    private int kept() {
        int most = limit / KEPT_PART;
        return Math.max(0, Math.min(scarce ? Math.min(most, 1) : most, peak - 1));
    }

    /** Returns the claim that renews the register if it is due: a withdrawn one didn't. Otherwise the next claim, or null. */
    private @Nullable Claim renewalOrNext(long now) {
        long age = now - register.sentAt;
        boolean due = register.running > 0 && age >= lifetime / 3 || failed && age >= RETRY_NANOS;
        return due && register.awaited == 0 && !closed ? claim(now) : next(now);
    }

    /** Returns the claim that is due; null if there is none. Closes this key if it isn't in use any more. */
    private @Nullable Claim next(long now) {
        retryLater(now);
        if (register.awaited != 0 || closed) {
            return null;
        }
        int unused = register.usable(now) - register.running - queue.size();
        if (queue.hasAsking() || unused > kept() || !failed && register.isMisstated(now)) {
            return claim(now);
        }
        boolean toRepeat = failures == 1; // once, since a flood of keys must not fill the memory while all claims fail
        closed = !toRepeat && register.running == 0 && queue.isEmpty() && register.usable(now) == 0;
        return null;
    }

    private Claim claim(long now) {
        queue.claim();
        int wanted = register.running + queue.size() + (kept() + 1) / 2;
        int most = register.usable(now) + others > limit ? limit - others : limit; // more, if the limit was lowered
        int want = Math.max(register.running, Math.min(most, wanted));
        return register.claim(policy.nextClaim(), want, limit, now);
    }

    private void proceed(@Nullable Claim claim) {
        if (claim != null) {
            send(claim);
        } else if (closed) {
            policy.remove(key, this);
        }
    }

    private void send(Claim claim) {
        CompletableFuture<Reply> sent;
        try {
            sent = policy.start(key, claim);
        } catch (RuntimeException | Error failed) {
            ended(claim, null, true, true); // this process failed, not the store
            throw failed;
        }
        if (sent == null) {
            ended(claim, null, false, false);
        } else {
            reply = sent;
            sent.whenComplete((granted, failure) -> ended(claim, granted, true, policy.isCongestion(failure)));
        }
    }

    void ended(Claim claim, @Nullable Reply granted, boolean sent, boolean congested) {
        Claim next;
        synchronized (this) {
            if (register.awaited != claim.number()) {
                return; // it was given up as lost, and the next one may be under way
            }
            failed = granted == null || granted.usable() < 0;
            failures = failed ? failures + (sent ? 1 : 0) : 0;
            if (granted == null || failed) {
                register.gaveUp();
                queue.removeDecided(call -> decideByRule(call, congested));
            } else {
                others = granted.others();
                scarce = granted.usable() < claim.want();
                register.replied(claim.number(), granted.usable());
            }
            long now = time.nanoTime(); // after the end of the claim, since a clock may throw
            if (!failed) {
                serve(now);
                if (queue.isClaimed()) {
                    queue.removeDecided(this::denyAsking);
                }
            }
            next = next(now);
        }
        proceed(next);
    }
}
