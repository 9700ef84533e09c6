package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.util.List;

/** A store of a user that can do no more than it must: it passes all calls on to another store. */
public class PlainStore implements BucketStore {

    private final BucketStore store;

    public PlainStore(BucketStore store) {
        this.store = store;
    }

    /** Returns the store for one call. */
    protected BucketStore store() {
        return store;
    }

    @Override
    public Decision take(List<Charge> charges) {
        return store().take(charges);
    }

    @Override
    public Decision reserve(List<Charge> charges) {
        return store().reserve(charges);
    }

    @Override
    public void giveBack(List<Answer> taken) {
        store().giveBack(taken);
    }

    @Override
    public BucketSnapshot snapshot(Charge charge) {
        return store().snapshot(charge);
    }

    @Override
    public void reset(Charge charge) {
        store().reset(charge);
    }
}
