package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RedisClientFactoryTests {

    /** The threads may be those of the application's own connections. */
    @Test
    void theEndOfAClientDoesNotEndTheThreadsThatItShares() throws Exception {
        ClientResources threads = ClientResources.create();
        ClientResources ofClient = RedisClientFactory.resources(threads, new NettyCustomizer() {});

        ofClient.shutdown().get();

        assertThat(threads.eventExecutorGroup().isShuttingDown()).isFalse();
        assertThat(threads.eventExecutorGroup().submit(() -> "runs").get()).isEqualTo("runs");
        assertThat(threads.timer().newTimeout(timeout -> {}, 1, TimeUnit.HOURS).cancel())
                .isTrue();
        threads.shutdown().get();
        assertThat(threads.eventExecutorGroup().isShuttingDown()).isTrue();
    }
}
