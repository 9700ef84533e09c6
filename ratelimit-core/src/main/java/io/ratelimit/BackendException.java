package io.ratelimit;

/**
 * The place where the buckets are could not be asked, or didn't answer as it must and in time. It is neither a yes nor a
 * no, and nothing is known about what was taken: perhaps all of it.
 */
public class BackendException extends RuntimeException {

    private static final long serialVersionUID = 1;

    public BackendException(String message) {
        super(message);
    }

    public BackendException(String message, Throwable cause) {
        super(message, cause);
    }
}
