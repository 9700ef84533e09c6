package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.Backend.Condition;
import io.ratelimit.autoconfigure.redis.Clients.Answer;
import java.time.Duration;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Connections that have become useless, or lead to the wrong server, without being closed. Without a check they would be
 * kept forever; with it, less than two seconds pass on an idle machine.
 */
@Tag("slow")
@Tag("timed")
class RedisConnectionTests {

    private static final int CLIENTS = 8;

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    @AutoClose
    private final RedisProcess other = RedisProcess.notStarted();

    @AutoClose
    private TcpProxy proxy;

    @BeforeEach
    void start() {
        proxy = new TcpProxy(redis.port());
    }

    private RedisApplication application(String strategy) {
        return RedisApplication.start(proxy.port(), """
                ratelimit:
                  backend: redis
                  redis.strategy: %s
                  on-backend-failure: deny
                  policies:
                    global: { rate: 1000000/1s }
                """.formatted(strategy));
    }

    private static void awaitCondition(RedisApplication application, Condition condition) {
        await().pollInterval(Duration.ofMillis(20)).until(() -> application.condition() == condition);
    }

    private static Clients clients(RedisApplication application) {
        return new Clients(CLIENTS, client -> application.status("/a"));
    }

    /** Like a firewall that drops existing connections but permits new ones. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aUselessConnectionIsRenewed(String strategy) {
        try (RedisApplication application = application(strategy);
                Clients clients = clients(application)) {
            clients.awaitAnswers(200);
            proxy.swallow();
            proxy.swallowNoMore();
            redis.ask(RedisCommands::configResetstat);
            await().until(() -> redis.calls() > 0);
            awaitCondition(application, Condition.UP);
            clients.stop();
            assertThat(clients.answers()).extracting(Answer::status).containsOnly(200, 503);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void afterANetworkThatSwallowedAllToo(String strategy) {
        try (RedisApplication application = application(strategy);
                Clients clients = clients(application)) {
            clients.awaitAnswers(200);
            proxy.swallow();
            awaitCondition(application, Condition.DOWN);
            int connections = proxy.connections();
            await().until(() -> proxy.connections() >= connections + 2);
            proxy.swallowNoMore();
            awaitCondition(application, Condition.UP);
        }
    }

    /** A name or an address that leads to the new master, as in a cloud, while the old one still answers. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aMasterThatBecameAReplicaIsLeft(String strategy) {
        other.start();
        try (RedisApplication application = application(strategy);
                Clients clients = clients(application)) {
            clients.awaitAnswers(200);
            proxy.leadTo(other.port());
            redis.ask(commands -> commands.replicaof("127.0.0.1", other.port()));
            await().until(() -> other.calls() > 0);
            clients.stop();
            assertThat(clients.answers()).extracting(Answer::status).containsOnly(200, 503);
            await().until(() -> application.status("/a") == 200);
        }
    }
}
