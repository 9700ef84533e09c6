package io.ratelimit;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if a remote store of buckets can't be reached, or doesn't answer correctly and in time. The call is neither
 * allowed nor denied. Some or all of its tokens may be taken, so don't try the same call again.
 *
 * <p>The exception has no stack trace, since it is thrown often while a backend fails. Its message must not contain
 * anything that a client sent.
 */
public class BackendException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final boolean misconfiguration;

    /** Creates the exception of a backend that can't be reached, or doesn't answer in time. */
    public BackendException(String message) {
        this(message, null);
    }

    /** Creates the exception of a backend that can't be reached, or doesn't answer in time. */
    public BackendException(String message, @Nullable Throwable cause) {
        this(message, cause, false);
    }

    /**
     * Creates an exception.
     *
     * @param misconfiguration whether the backend answers, but rejects the operation until its configuration is
     *     corrected
     */
    public BackendException(String message, @Nullable Throwable cause, boolean misconfiguration) {
        super(message, cause, false, false);
        this.misconfiguration = misconfiguration;
    }

    /** Returns whether the backend's configuration must be corrected. */
    public boolean isMisconfiguration() {
        return misconfiguration;
    }
}
