package io.ratelimit.redis;

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

/** Buckets that a test can take away, make slow, and count the calls of. */
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

    /** From now on each call does what it is asked, and then fails: nobody can tell. */
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

    /** How many calls there were since this was asked last. */
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
    public BucketSnapshot look(Charge charge) {
        return call(() -> store.look(charge));
    }

    @Override
    public void forget(Charge charge) {
        call(() -> {
            store.forget(charge);
            return true;
        });
    }

    /** What is in it, whether it can be reached or not. */
    long available(Charge charge) {
        return store.look(charge).available();
    }
}
