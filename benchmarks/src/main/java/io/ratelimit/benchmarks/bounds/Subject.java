package io.ratelimit.benchmarks.bounds;

import java.time.Duration;
import java.util.Map;

/** A limiter that is run, in the order of the table. */
enum Subject {
    BUCKET4J(
            "bucket4j",
            Place.MEMORY,
            (limit, port) -> InMemory.bucket4j(limit),
            (limit, port) -> InMemory.bucket4jWithKeys(limit)),
    RESILIENCE4J("resilience4j", Place.MEMORY, (limit, port) -> InMemory.resilience4j(limit)),
    GUAVA("guava", Place.MEMORY, (limit, port) -> InMemory.guava(limit), null),
    SENTINEL(
            "sentinel",
            Place.MEMORY,
            (limit, port) -> SentinelRules.start(limit),
            (limit, port) -> SentinelRules.startWithKeys(limit)),
    NGINX("nginx", Place.PROXY, (limit, port) -> Nginx.start(limit, Map.of())),
    BUCKET4J_REDIS("bucket4j-redis", Place.REDIS, OnRedis::bucket4j),
    REDISSON("redisson", Place.REDIS, OnRedis::redisson),
    GATEWAY("gateway", Place.REDIS, OnRedis::gateway),
    BUCKET4J_POSTGRES("bucket4j-postgres", Place.POSTGRES, OnDatabase::bucket4jOnPostgres),
    RATELIMIT("ratelimit", Place.MEMORY, (limit, port) -> InMemory.ours(limit)),
    RATELIMIT_SHARES("ratelimit-shares", Place.MEMORY, (limit, port) -> InMemory.oursWithShares(limit), null),
    RATELIMIT_REDIS("ratelimit-redis", Place.REDIS, (limit, port) -> OnRedis.ours(limit, port, Duration.ZERO)),
    RATELIMIT_LEASE("ratelimit-lease", Place.REDIS, (limit, port) -> OnRedis.ours(limit, port, Duration.ofMillis(50))),
    RATELIMIT_POSTGRES("ratelimit-postgres", Place.POSTGRES, OnDatabase::oursOnPostgres),
    RATELIMIT_H2("ratelimit-h2", Place.H2, OnDatabase::oursOnH2);

    /** The place of a limiter's state. */
    enum Place {
        MEMORY,
        PROXY,
        REDIS,
        H2,
        POSTGRES;

        boolean isShared() {
            return this == REDIS || this == H2 || this == POSTGRES;
        }
    }

    /** Starts an instance beside a backend; 0 is the port of none. */
    interface Starter {
        Instance start(Limit limit, int port) throws Exception;
    }

    private final String id;
    private final Place place;
    private final Starter starter;
    private final Starter withKeys;

    Subject(String id, Place place, Starter starter) {
        this(id, place, starter, starter);
    }

    Subject(String id, Place place, Starter starter, Starter withKeys) {
        this.id = id;
        this.place = place;
        this.starter = starter;
        this.withKeys = withKeys;
    }

    /** Returns the name in commands and files. */
    String id() {
        return id;
    }

    Place place() {
        return place;
    }

    boolean hasKeys() {
        return withKeys != null;
    }

    Instance start(Limit limit, int port) throws Exception {
        return starter.start(limit, port);
    }

    Instance startWithKeys(Limit limit, int port) throws Exception {
        return withKeys.start(limit, port);
    }
}
