package io.ratelimit.autoconfigure.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.jdbc.JdbcStorage;
import io.ratelimit.jdbc.JdbcStorage.MissingTableException;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.remote.FailoverBucketStore;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.SmartLifecycle;

/**
 * The self-test of the database when the application starts, outside the deadline of any request, and after tools such as
 * Flyway have created the table. A missing table stops the start, another failure doesn't. A stopped application has no
 * connection; its restart includes the self-test.
 */
final class JdbcStart implements SmartInitializingSingleton, SmartLifecycle {

    private final JdbcStorage storage;
    private final FailoverBucketStore store;
    private final boolean enabled;
    private volatile boolean running = true;

    /** @param enabled whether any policy with buckets in the database is not off; otherwise no connection is opened */
    JdbcStart(JdbcStorage storage, FailoverBucketStore store, boolean enabled) {
        this.storage = storage;
        this.store = store;
        this.enabled = enabled;
    }

    @Override
    public void afterSingletonsInstantiated() {
        if (enabled) {
            selfTest();
        }
    }

    private void selfTest() {
        try {
            storage.selfTest();
        } catch (MissingTableException missing) {
            throw new RateLimitConfigurationException(
                    "'backend: jdbc' is set, but " + missing.getMessage() + " in the database.",
                    "Run the script '" + missing.script()
                            + "' of ratelimit-jdbc, for example as a migration of Flyway, or set"
                            + " 'ratelimit.jdbc.initialize-schema: always'. If the table has another name or schema, set"
                            + " 'ratelimit.jdbc.table'.",
                    "ratelimit.jdbc.table");
        } catch (BackendException failed) {
            store.failedAtStart(failed);
        }
    }

    @Override
    public void start() {
        if (!running) {
            storage.start();
            running = true;
            afterSingletonsInstantiated();
        }
    }

    @Override
    public void stop() {
        running = false;
        store.awaitSettlements();
        storage.stop();
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    /** Returns the first phase: whatever takes tokens starts later, and stops earlier. */
    @Override
    public int getPhase() {
        return Integer.MIN_VALUE;
    }
}
