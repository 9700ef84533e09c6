package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Buckets in Redis, each call of which takes no longer than its request has left.
 *
 * @param failed is told of each failure
 */
record WithinDeadline(RedisBucketStore store, RequestDeadline request, Consumer<BackendException> failed)
        implements BucketStore {

    private <T> T call(Function<Deadline, T> call) {
        try {
            return call.apply(Deadline.in(Duration.ofNanos(request.left())));
        } catch (BackendException failure) {
            failed.accept(failure);
            throw failure;
        }
    }

    @Override
    public Decision take(List<Charge> charges) {
        return call(deadline -> store.take(charges, false, deadline));
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return call(deadline -> store.take(charges, true, deadline));
    }

    @Override
    public void giveBack(List<Answer> taken) {
        call(deadline -> {
            store.giveBack(taken, deadline);
            return true;
        });
    }

    @Override
    public BucketSnapshot look(Charge charge) {
        return call(deadline -> store.look(charge, deadline));
    }

    @Override
    public void forget(Charge charge) {
        call(deadline -> {
            store.forget(charge, deadline);
            return true;
        });
    }
}
