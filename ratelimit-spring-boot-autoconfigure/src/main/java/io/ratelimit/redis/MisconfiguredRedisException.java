package io.ratelimit.redis;

import io.ratelimit.BackendException;

/**
 * A failure that Redis answers because of its configuration or its data. It is read-only, full, forbids a command, or
 * holds another kind of value under a key of a bucket. Such a failure doesn't end by itself.
 */
final class MisconfiguredRedisException extends BackendException {

    private static final long serialVersionUID = 1;

    MisconfiguredRedisException(String message, Throwable cause) {
        super(message, cause, true);
    }
}
