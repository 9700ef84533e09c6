package io.ratelimit.remote.lease;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** A remote store whose calls are counted and can be made to fail. For one thread. */
public final class ObservedStore implements LeasingBucketStore {

    private final LeasingBucketStore store;
    public final List<Long> asked = new ArrayList<>();
    public int calls;
    /** True if the store is to execute the next call and its reply is to be lost. */
    public boolean loseNext;
    /** True if no call is to reach the store. */
    public boolean down;
    /** Runs between the store's reply and its arrival. */
    public Runnable onTheWay = () -> {};

    /** Receives each decision of the store, also if its reply is lost. */
    public Consumer<Decision> decided = decision -> {};

    public ObservedStore(LeasingBucketStore store) {
        this.store = store;
    }

    private Decision end(Decision decision) {
        decided.accept(decision);
        end();
        return decision;
    }

    private void begin() {
        calls++;
        if (down) {
            throw new BackendException("down");
        }
    }

    private void end() {
        onTheWay.run();
        boolean lose = loseNext;
        loseNext = false;
        if (lose) {
            throw new BackendException("lost");
        }
    }

    @Override
    public Decision take(List<Charge> charges) {
        begin();
        return end(store.take(charges));
    }

    @Override
    public Decision take(List<Charge> charges, List<LeaseRequest> leases) {
        begin();
        return end(store.take(charges, leases.stream().map(this::seen).toList()));
    }

    @Override
    public BucketSnapshot lease(LeaseRequest lease) {
        begin();
        BucketSnapshot after = store.lease(seen(lease));
        end();
        return after;
    }

    /** Returns the request, or another one if its result is to be lost. */
    private LeaseRequest seen(LeaseRequest lease) {
        asked.add(lease.maxTokens());
        return loseNext ? new LeaseRequest(lease.charge(), lease.maxTokens()) : lease;
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        begin();
        return end(store.reserve(charges));
    }

    @Override
    public void giveBack(List<Answer> taken) {
        begin();
        store.giveBack(taken);
    }

    @Override
    public boolean settle(Answer taken, long cost) {
        begin();
        return store.settle(taken, cost);
    }

    @Override
    public BucketSnapshot snapshot(Charge charge) {
        return store.snapshot(charge);
    }

    @Override
    public void reset(Charge charge) {
        begin();
        store.reset(charge);
    }
}
