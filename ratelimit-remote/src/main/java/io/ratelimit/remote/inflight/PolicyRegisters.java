package io.ratelimit.remote.inflight;

import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.SharedSlots;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/** The calls in flight of one policy, by their keys. Thread-safe. */
final class PolicyRegisters implements SharedSlots {

    private final ThrottlePolicy policy;
    private final Registers registers;
    private final Map<String, BusyKey> keys = new ConcurrentHashMap<>();

    PolicyRegisters(ThrottlePolicy policy, Registers registers) {
        this.policy = policy;
        this.registers = registers;
    }

    @Override
    public Slot take(Charge charge) {
        int limit = charge.spec().inFlight();
        SlotCall call = enter(charge.key(), () -> limit, false);
        try {
            if (!call.isDone()) {
                registers.access().await(call);
            }
            if (!call.isDone()) {
                call.endAsking(!registers.access().hasFailed());
            }
            return call;
        } catch (RuntimeException | Error failed) {
            call.withdraw();
            throw failed;
        }
    }

    boolean needsClaim(SharedSlots.Request request) {
        BusyKey busy = keys.get(request.charge().key());
        return busy == null || busy.needsClaim(request.charge().spec().inFlight());
    }

    /** Makes a claim for a request that a take of tokens carries; null if the key has a claim under way. */
    @Nullable
    CarriedClaim carry(SharedSlots.Request request) {
        int limit = request.charge().spec().inFlight();
        String key = request.charge().key();
        while (true) {
            BusyKey busy = key(key);
            if (!busy.isClosed()) {
                return busy.carry(new BucketName(policy.name(), key), () -> limit, request);
            }
            remove(key, busy);
        }
    }

    private BusyKey key(String key) {
        BusyKey busy = keys.get(key);
        if (busy == null) {
            BusyKey fresh = new BusyKey(key, this, registers);
            busy = keys.putIfAbsent(key, fresh);
            busy = busy == null ? fresh : busy;
        }
        registers.keyInUse();
        return busy;
    }

    @Override
    public Slot enqueue(Charge charge, IntSupplier limit) {
        return enter(charge.key(), limit, true);
    }

    private SlotCall enter(String key, IntSupplier limit, boolean waits) {
        while (true) {
            BusyKey busy = key(key);
            SlotCall call = busy.enter(limit, waits);
            if (call != null) {
                return call;
            }
            remove(key, busy);
        }
    }

    /** Removes a key that isn't in use any more. Another thread may have removed it. */
    void remove(String key, BusyKey closed) {
        keys.remove(key, closed);
    }

    /** Starts a claim, unless the store is unavailable: then returns null. */
    @Nullable
    CompletableFuture<Reply> start(String key, Claim claim) {
        return registers
                .access()
                .start(() -> registers.store().set(new BucketName(policy.name(), key), claim, registers.timeToLive()));
    }

    long nextClaim() {
        return registers.nextClaim();
    }

    boolean isCongestion(@Nullable Throwable failure) {
        return failure != null && registers.access().isCongestion(failure);
    }

    int fallback(int limit, boolean congested) {
        return registers.access().fallback(policy, limit, congested);
    }

    @Override
    public int held() {
        int held = 0;
        for (BusyKey key : keys.values()) {
            held += key.running();
        }
        return held;
    }

    @Override
    public int held(String key) {
        BusyKey busy = keys.get(key);
        return busy == null ? 0 : busy.running();
    }

    /** Returns how many calls of a key have no slot yet. */
    int queued(String key) {
        BusyKey busy = keys.get(key);
        return busy == null ? 0 : busy.queued();
    }

    boolean isBusy() {
        return !keys.isEmpty();
    }

    void giveBackKept(List<CompletableFuture<Reply>> replies) {
        for (BusyKey key : keys.values()) {
            CompletableFuture<Reply> reply = key.giveBackKept();
            if (reply != null) {
                replies.add(reply);
            }
        }
    }

    void tick() {
        keys.values().forEach(BusyKey::tick);
    }
}
