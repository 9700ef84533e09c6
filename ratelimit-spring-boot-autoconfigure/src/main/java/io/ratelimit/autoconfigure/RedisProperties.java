package io.ratelimit.autoconfigure;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * Storage of buckets in Redis. The connection is configured by {@code spring.data.redis}.
 *
 * @param keyPrefix Prefix of all keys, so that several applications can share a Redis. By default
 *     ratelimit:${spring.application.name}.
 * @param keySecret Secret of the hash that replaces values of clients in keys. Without a secret, values that can be guessed
 *     can be found out.
 * @param timeout Longest time that one request waits for Redis, for all its calls together.
 * @param strategy Command to take tokens by: script (a Lua script, called by its SHA) or transaction (WATCH, MULTI and
 *     EXEC, for servers without scripts).
 * @param localShare Share of capacity and rate that each instance grants from memory while Redis is unavailable, such as
 *     0.25 for four instances.
 */
public record RedisProperties(
        @Nullable String keyPrefix,
        @Nullable String keySecret,
        @DefaultValue("100ms") Duration timeout,
        @DefaultValue("script") Strategy strategy,
        @DefaultValue("1.0") double localShare) {

    static final RedisProperties DEFAULT =
            new RedisProperties(null, null, Duration.ofMillis(100), Strategy.SCRIPT, 1.0);

    private static final String PROPERTY = RateLimitProperties.PREFIX + ".redis";
    private static final Duration MAX_TIMEOUT = Duration.ofSeconds(10);

    /** Commands to take tokens by. */
    public enum Strategy {
        /** A Lua script. */
        SCRIPT,
        /** An optimistic transaction. */
        TRANSACTION
    }

    /**
     * Checks the values that binding accepts.
     *
     * @throws InvalidConfigurationPropertyValueException if a value can't be used
     */
    void check() {
        if (timeout.compareTo(Duration.ofMillis(1)) < 0 || timeout.compareTo(MAX_TIMEOUT) > 0) {
            throw new InvalidConfigurationPropertyValueException(
                    PROPERTY + ".timeout",
                    timeout,
                    "timeout must be between 1ms and 10s, but was " + timeout.toMillis()
                            + "ms: a request may wait for Redis that long");
        }
        if (!(localShare > 0 && localShare <= 1)) {
            throw new InvalidConfigurationPropertyValueException(
                    PROPERTY + ".local-share",
                    localShare,
                    "local-share must be above 0 and at most 1, but was " + localShare
                            + ": set 0.25 for four instances");
        }
        if (keyPrefix != null && keyPrefix.isBlank()) {
            throw new InvalidConfigurationPropertyValueException(
                    PROPERTY + ".key-prefix",
                    keyPrefix,
                    "key-prefix must not be blank: remove it to use the name of the application");
        }
        if (keySecret != null && keySecret.isBlank()) {
            throw new InvalidConfigurationPropertyValueException(
                    PROPERTY + ".key-secret",
                    keySecret,
                    "key-secret must not be blank, because it would hide nothing: remove it to use none");
        }
    }

    /** Returns a text without the secret. */
    @Override
    public String toString() {
        return "RedisProperties[keyPrefix=" + keyPrefix + ", timeout=" + timeout + ", strategy=" + strategy
                + ", localShare=" + localShare + "]";
    }
}
