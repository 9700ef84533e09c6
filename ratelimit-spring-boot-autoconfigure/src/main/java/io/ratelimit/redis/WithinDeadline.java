package io.ratelimit.redis;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.List;

/** Buckets in Redis, each call of which takes no longer than its request has left. */
record WithinDeadline(RedisBucketStore store, RequestDeadline request) implements BucketStore {

    private Deadline deadline() {
        return Deadline.in(Duration.ofNanos(request.left()));
    }

    @Override
    public Decision take(List<Charge> charges) {
        return store.take(charges, false, deadline());
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return store.take(charges, true, deadline());
    }

    @Override
    public void giveBack(List<Answer> taken) {
        store.giveBack(taken, deadline());
    }

    @Override
    public BucketSnapshot look(Charge charge) {
        return store.look(charge, deadline());
    }

    @Override
    public void forget(Charge charge) {
        store.forget(charge, deadline());
    }
}
