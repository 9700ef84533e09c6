package io.ratelimit.benchmarks.bounds;

import java.io.IOException;

/** A limiter as one process of an application has it. Thread-safe. */
interface Instance extends AutoCloseable {

    /** Asks for one token of a key. An exception is a failure, which an application answers without a grant. */
    boolean allows(String key) throws Exception;

    /** Changes the limit while calls go on. */
    void change(Limit limit) throws Exception;

    @Override
    default void close() throws IOException {}
}
