package io.ratelimit.failover;

import io.ratelimit.BackendException;
import org.jspecify.annotations.Nullable;

/**
 * A call that this process didn't make in time, or made too late for an answer. Reasons are that no connection was free,
 * that other calls always wrote first, or that the command waited in this process. It proves nothing about the backend.
 */
public final class CongestedException extends BackendException {

    private static final long serialVersionUID = 1;

    public CongestedException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
