package io.ratelimit.remote;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A bucket store that a test can make fail or slow, and that counts its calls. */
final class FragileStore implements BucketStore {

    private final BucketStore store;
    private final ManualTimeSource time;
    private final AtomicInteger calls = new AtomicInteger();
    private volatile @Nullable Throwable failure;
    private volatile Duration latency = Duration.ZERO;

    FragileStore(ManualTimeSource time) {
        this.store = BucketStore.local(time);
        this.time = time;
    }

    /** Makes each later call fail after its work is done, so that the caller can't see the result. */
    void fail(Throwable failure) {
        this.failure = failure;
    }

    void breakDown() {
        fail(new BackendException("gone"));
    }

    void mend() {
        failure = null;
        latency = Duration.ZERO;
    }

    void slowDown(Duration latency) {
        this.latency = latency;
    }

    /** Returns the number of calls since the last call of this method. */
    int calls() {
        return calls.getAndSet(0);
    }

    private <T> T call(Supplier<T> call) {
        calls.incrementAndGet();
        if (!latency.isZero()) {
            time.advance(latency);
        }
        T result = call.get();
        Throwable now = failure;
        if (now instanceof Error error) {
            throw error;
        } else if (now instanceof RuntimeException exception) {
            throw exception;
        }
        return result;
    }

    @Override
    public Decision take(List<Charge> charges) {
        return call(() -> store.take(charges));
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return call(() -> store.reserve(charges));
    }

    @Override
    public void giveBack(List<Answer> taken) {
        call(() -> {
            store.giveBack(taken);
            return true;
        });
    }

    @Override
    public BucketSnapshot snapshot(Charge charge) {
        return call(() -> store.snapshot(charge));
    }

    @Override
    public void reset(Charge charge) {
        call(() -> {
            store.reset(charge);
            return true;
        });
    }

    /** Returns the tokens in a bucket, even while the store fails. */
    long available(Charge charge) {
        return store.snapshot(charge).available();
    }
}
