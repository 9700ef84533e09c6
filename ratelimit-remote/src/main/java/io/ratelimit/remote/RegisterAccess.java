package io.ratelimit.remote;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline.CongestedException;
import io.ratelimit.remote.inflight.RegisterStore;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import io.ratelimit.remote.inflight.Registers;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The rules of a store that may fail for its registers of calls in flight. */
record RegisterAccess(ResilientCalls calls, RegisterStore store, Deadline deadline, FallbackBuckets fallback)
        implements Registers.Access {

    @Override
    public @Nullable CompletableFuture<Reply> start(Supplier<CompletableFuture<Reply>> call) {
        return calls.start(call, store::failure);
    }

    @Override
    public boolean isCongestion(Throwable failure) {
        return failure instanceof CongestedException || failure instanceof VirtualMachineError;
    }

    @Override
    public long timeoutNanos() {
        return deadline.timeout().toNanos();
    }

    @Override
    public boolean hasFailed() {
        return deadline.hasFailed();
    }

    @Override
    public void await(Future<?> decision) {
        deadline.awaitShared(decision);
    }

    @Override
    public int fallback(ThrottlePolicy policy, int limit, boolean congested) {
        return fallback.slots(policy, limit, congested);
    }
}
