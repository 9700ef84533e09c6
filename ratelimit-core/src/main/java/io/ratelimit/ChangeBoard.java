package io.ratelimit;

import java.time.Instant;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * The place that holds the changes of limits for all instances: a text for each limit. The operations don't block. They
 * are executed in the order of their calls, and fail with a {@link BackendException}. Thread-safe.
 */
public interface ChangeBoard {

    /**
     * The changes for all instances.
     *
     * @param now the time of the board
     * @param changes the signed changes by their limits
     */
    record Posted(Instant now, Map<String, String> changes) {}

    /** Returns the name of the place in messages, such as Redis. */
    String place();

    /** Returns the name of the property with the secret of signatures. */
    String secretProperty();

    /** Returns whether changes are signed, so that another writer to the board can't make one. */
    boolean areSigned();

    /** Returns a change with its signature, or as it is if changes aren't signed. */
    String sign(String limit, String change);

    /**
     * Returns a change without its signature.
     *
     * @throws IllegalArgumentException if the signature is missing or isn't that of an instance of this application
     */
    String verify(String limit, String signed);

    /** Reads the changes of limits, and no others. */
    CompletableFuture<Posted> read(Collection<String> limits);

    /** Puts the signed change of a limit in place of the previous one. */
    CompletableFuture<?> put(String limit, String signed);

    /** Removes the change of a limit. Returns whether there was one. */
    CompletableFuture<Boolean> remove(String limit);
}
