package io.ratelimit.policy;

import io.ratelimit.Rate;
import java.time.Duration;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DefaultValue;

/** The properties that every backend has that all instances share, and the records of each backend. */
public sealed interface BackendProperties {

    /** Returns the beginning of all keys; null for the name of the application. */
    @Nullable
    String keyPrefix();

    /** Returns the secret of hashes and HMACs; null for none. */
    @Nullable
    String keySecret();

    /** Returns the longest wait as it is written. Spring would read a duration without a unit as milliseconds. */
    String timeout();

    /**
     * Returns the longest time that one request waits for the backend.
     *
     * @throws IllegalArgumentException if the written text is no duration
     */
    default Duration longestWait() {
        return Rate.parseDuration(timeout().strip());
    }

    /** Returns the share of a limit that each instance grants from memory while the backend is unavailable. */
    double localShare();

    /** Returns whether the instance follows changes for all instances; null where the exposure of the endpoint decides. */
    @Nullable
    Boolean changes();

    /**
     * Storage of buckets in Redis. The connection is configured by {@code spring.data.redis}.
     *
     * @param keyPrefix Prefix of all keys in Redis, so that several applications can share one. By default
     *     ratelimit:${spring.application.name}.
     * @param keySecret Secret of the hash that replaces values of clients in keys, and of the HMAC of changes for all instances.
     *     Without it, guessable values such as addresses can be recovered from keys, and any writer of Redis can change limits
     *     there.
     * @param timeout Longest time that one request waits for Redis, for all its calls together. Its settlements have the
     *     same time once more.
     * @param strategy How tokens are taken in Redis: script (a Lua script) or transaction (WATCH, MULTI and EXEC, for a
     *     single server without scripts).
     * @param localShare Share of capacity and rate that each instance grants from memory while Redis is unavailable, such as
     *     0.25 for four instances. A share of less than one token is none.
     * @param changes Whether the instance follows changes of limits for all instances. With a key-secret it follows only those
     *     that have its HMAC. Default: true where the endpoint ratelimits is exposed.
     */
    record Redis(
            @Nullable String keyPrefix,
            @Nullable String keySecret,
            @DefaultValue("100ms") String timeout,
            @DefaultValue("script") Strategy strategy,
            @DefaultValue("1.0") double localShare,
            @Nullable Boolean changes)
            implements BackendProperties {

        /** Commands to take tokens by. */
        public enum Strategy {
            /** A Lua script. */
            SCRIPT,
            /** An optimistic transaction. */
            TRANSACTION
        }

        /** Returns a text without the secret. */
        @Override
        public String toString() {
            return "Redis[keyPrefix=" + keyPrefix + ", timeout=" + timeout + ", strategy=" + strategy + ", localShare="
                    + localShare + ", changes=" + changes + "]";
        }
    }

    /**
     * Storage of buckets in a table of a database.
     *
     * @param dataSource Name of the bean of type DataSource that leads to the database. Default: the application's.
     * @param table Name of the table, with its schema if it isn't the default one.
     * @param initializeSchema Whether the table is created at the start if it is missing: embedded (in a database in
     *     memory), always or never.
     * @param keyPrefix Prefix that separates the rows of this application from those of others in the same table. By
     *     default ratelimit:${spring.application.name}.
     * @param keySecret Secret of the hash that replaces values of clients in the table, and of the HMAC of changes for all
     *     instances. Without it, guessable values such as addresses can be recovered from ids, and any writer of the table
     *     can change limits there.
     * @param timeout Longest time that one request waits for the database, for all its statements together. Its settlements
     *     have the same time once more.
     * @param poolSize Number of connections that the limits open, in addition to the application's pool.
     * @param localShare Share of capacity and rate that each instance grants from memory while the database is unavailable,
     *     such as 0.25 for four instances. A share of less than one token is none.
     * @param changes Whether the instance follows changes of limits for all instances. With a key-secret it follows only those
     *     that have its HMAC. Default: true where the endpoint ratelimits is exposed.
     */
    record Jdbc(
            @Nullable String dataSource,
            @DefaultValue("ratelimit_bucket") String table,
            @DefaultValue("embedded") InitializeSchema initializeSchema,
            @Nullable String keyPrefix,
            @Nullable String keySecret,
            @DefaultValue("100ms") String timeout,
            @DefaultValue("8") int poolSize,
            @DefaultValue("1.0") double localShare,
            @Nullable Boolean changes)
            implements BackendProperties {

        /** Cases in which the table is created at the start. */
        public enum InitializeSchema {
            /** In a database in memory. */
            EMBEDDED,
            /** In any database. */
            ALWAYS,
            /** In none. */
            NEVER
        }

        /** Returns a text without the secret. */
        @Override
        public String toString() {
            return "Jdbc[dataSource=" + dataSource + ", table=" + table + ", initializeSchema=" + initializeSchema
                    + ", keyPrefix=" + keyPrefix + ", timeout=" + timeout + ", poolSize=" + poolSize + ", localShare="
                    + localShare + ", changes=" + changes + "]";
        }
    }

    /** Locations of buckets. */
    enum BackendKind {
        /** The memory of each instance. */
        LOCAL(null),
        /** Redis, shared by all instances. */
        REDIS("Redis"),
        /** A table of a database, shared by all instances. */
        JDBC("the database");

        private final @Nullable String place;

        BackendKind(@Nullable String place) {
            this.place = place;
        }

        /** Returns the name of the backend in the log and the health; null if the buckets are in memory. */
        public @Nullable String place() {
            return place;
        }

        /** Returns the kind as it is configured. */
        public String text() {
            return name().toLowerCase(Locale.ROOT);
        }
    }
}
