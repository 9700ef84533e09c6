package io.ratelimit.redis;

import io.ratelimit.BackendException;

/**
 * Redis answered, but as it is set up it can't keep the buckets: it is read-only, full, forbids a command, or what is
 * there under a key of ours is none of ours. Time alone doesn't mend it.
 */
public final class MisconfiguredRedisException extends BackendException {

    private static final long serialVersionUID = 1;

    MisconfiguredRedisException(String message, Throwable cause) {
        super(message, cause, true);
    }
}
