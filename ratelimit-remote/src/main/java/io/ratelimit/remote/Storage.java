package io.ratelimit.remote;

import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;

/** The place of an application's buckets: a bucket store and the connections that it needs. Thread-safe. */
public interface Storage extends AutoCloseable {

    /** Returns the bucket store. Its calls end by the deadline, and throw a {@link BackendException} if the place fails. */
    BucketStore store();

    /** Returns the changes of limits for all instances. */
    ChangeBoard changes();

    /**
     * Connects, and takes from a bucket as requests will. It takes a few seconds at most.
     *
     * @throws BackendException if the place fails
     */
    void selfTest();

    /** Makes connections possible again after {@link #stop}. None is open yet. */
    void start();

    /** Closes all connections. Calls of the bucket store fail until {@link #start}. */
    void stop();

    @Override
    void close();
}
