package io.ratelimit;

import org.jspecify.annotations.Nullable;

/**
 * The place where the buckets are could not be asked, or didn't answer as it must and in time. It is neither a yes nor a
 * no, and nothing is known about what was taken, perhaps all of it: so it must not be asked again for the same call.
 *
 * <p>Has no stack trace of its own, for in an outage it is thrown often; and nothing that a client sent is in its message.
 */
public class BackendException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final boolean misconfiguration;

    /** It can't be reached, or doesn't answer in time: time may mend it. */
    public BackendException(String message) {
        this(message, null);
    }

    /** It can't be reached, or doesn't answer in time: time may mend it. */
    public BackendException(String message, @Nullable Throwable cause) {
        this(message, cause, false);
    }

    /**
     * @param misconfiguration whether it answers, but can't or won't do what it is asked: somebody has to mend it
     */
    public BackendException(String message, @Nullable Throwable cause, boolean misconfiguration) {
        super(message, cause, false, false);
        this.misconfiguration = misconfiguration;
    }

    /** Whether somebody has to mend it. */
    public boolean isMisconfiguration() {
        return misconfiguration;
    }
}
