package io.ratelimit.autoconfigure;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * How the buckets in Redis are kept. Where Redis is, {@code spring.data.redis.*} says.
 *
 * @param keyPrefix what all keys begin with, so that several applications may share a Redis; by default
 *     ratelimit:${spring.application.name}
 * @param keySecret of the hash that stands for what clients are told by; without one it hides nothing that can be guessed
 * @param timeout the longest that the calls of one request wait for Redis, all together
 * @param strategy how a bucket is taken from: script (a Lua script, called by its SHA) or transaction (WATCH, MULTI and
 *     EXEC, where scripts are not allowed)
 * @param localShare the part of capacity and rate that each instance grants from memory while Redis is away, such as 0.25
 *     for four instances
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
    private static final Duration LONGEST = Duration.ofSeconds(10);

    /** How a bucket in Redis is taken from. */
    public enum Strategy {
        /** By a Lua script. */
        SCRIPT,
        /** By an optimistic transaction. */
        TRANSACTION
    }

    /** Refuses what could not work. */
    void check() {
        if (timeout.compareTo(Duration.ofMillis(1)) < 0 || timeout.compareTo(LONGEST) > 0) {
            throw new InvalidConfigurationPropertyValueException(
                    PROPERTY + ".timeout",
                    timeout,
                    "timeout must be between 1ms and 10s, but was " + timeout.toMillis()
                            + "ms: so long a request may wait for Redis");
        }
        if (!(localShare > 0 && localShare <= 1)) {
            throw new InvalidConfigurationPropertyValueException(
                    PROPERTY + ".local-share",
                    localShare,
                    "local-share must be above 0 and at most 1, but was " + localShare
                            + ": say 0.25 where there are four instances");
        }
        if (keyPrefix != null && keyPrefix.isBlank()) {
            throw new InvalidConfigurationPropertyValueException(
                    PROPERTY + ".key-prefix",
                    keyPrefix,
                    "key-prefix must be more than blanks: without it the name of the application is taken");
        }
        if (keySecret != null && keySecret.isBlank()) {
            throw new InvalidConfigurationPropertyValueException(
                    PROPERTY + ".key-secret",
                    keySecret,
                    "key-secret must be more than blanks, for it would hide nothing: remove it where none is wanted");
        }
    }

    /** Without the secret. */
    @Override
    public String toString() {
        return "RedisProperties[keyPrefix=" + keyPrefix + ", timeout=" + timeout + ", strategy=" + strategy
                + ", localShare=" + localShare + "]";
    }
}
