package io.ratelimit.autoconfigure;

import io.ratelimit.BackendException;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.Storage;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.SmartLifecycle;

/**
 * The self-test of a backend when the application starts, outside the deadline of any request. A failure doesn't stop the
 * start. A stopped application, such as one at a CRaC checkpoint, has no connection; its restart includes the self-test.
 */
abstract class BackendStart implements SmartInitializingSingleton, SmartLifecycle {

    private final Storage storage;
    private final FailoverBucketStore store;
    private final boolean enabled;
    private volatile boolean running = true;

    /** @param enabled whether any policy with buckets in the backend is not off; otherwise no connection is opened */
    BackendStart(Storage storage, FailoverBucketStore store, boolean enabled) {
        this.storage = storage;
        this.store = store;
        this.enabled = enabled;
    }

    @Override
    public final void afterSingletonsInstantiated() {
        if (enabled) {
            started(connects());
        }
    }

    /** Called after the self-test of the first start. */
    void started(boolean connected) {}

    /** Called when the self-test fails. */
    void failed(BackendException failure) {
        store.failedAtStart(failure);
    }

    private boolean connects() {
        try {
            storage.selfTest();
            return true;
        } catch (BackendException failure) {
            failed(failure);
            return false;
        }
    }

    @Override
    public final void start() {
        storage.start();
        running = true;
        if (enabled) {
            connects();
        }
    }

    @Override
    public final void stop() {
        running = false;
        store.awaitSettlements();
        store.giveBackSlots();
        storage.stop();
    }

    @Override
    public final boolean isRunning() {
        return running;
    }

    /** Returns the first phase: whatever takes tokens starts later, and stops earlier. */
    @Override
    public final int getPhase() {
        return Integer.MIN_VALUE;
    }
}
