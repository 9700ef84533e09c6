package io.ratelimit.web.servlet;

import io.ratelimit.redis.TestRedis;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import redis.embedded.RedisServer;

/** Guaranteed shares in Redis, whose clock runs: less than a token comes back during a test. */
@Tag("slow")
class SharesOnRedisTests extends SharesHttpContract {

    private static final int PORT = TestRedis.freePort();

    @AutoClose("stop")
    private static final RedisServer redis = TestRedis.serverAt(PORT);

    @RegisterExtension
    static final TestServer server = TestServer.open("""
            spring.application.name: shares
            spring.data.redis: { host: 127.0.0.1, port: %d }
            ratelimit.backend: redis
            ratelimit.redis.timeout: 5s
            """.formatted(PORT) + YAML, Api.class);

    @Test
    void aChangeForAllInstancesBelowTheSharesIsRejected() {
        assertRejected("{\"for\": \"all\", \"rate\": \"7/1d\"}", "raise the rate to 8/1d");
    }

    @Override
    TestServer server() {
        return server;
    }
}
