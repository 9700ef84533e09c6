package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.autoconfigure.redis.Clients.Answer;
import io.ratelimit.redis.TestRedis;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import redis.embedded.RedisSentinel;

/** Limits on a master that Sentinel returns, and on another one after a failover. */
@Tag("slow")
class RedisSentinelTests {

    private static final String NAME = "shop";

    @TempDir
    private Path directory;

    private RedisProcess master;
    private RedisProcess replica;
    private RedisSentinel sentinel;

    @BeforeEach
    void start() throws IOException {
        master = RedisProcess.started("dir " + directory, "repl-diskless-sync-delay 0");
        replica = RedisProcess.started(
                "dir " + directory, "repl-diskless-sync-delay 0", "replicaof 127.0.0.1 " + master.port());
        await().until(() -> replica.ask(redis -> redis.info("replication")).contains("master_link_status:up"));
        sentinel = RedisSentinel.newRedisSentinel()
                .port(TestRedis.freePort())
                .masterName(NAME)
                .masterPort(master.port())
                .quorumSize(1)
                .downAfterMilliseconds(500)
                .failOverTimeout(2_000)
                .onShutdownForceStop(true)
                .build();
        sentinel.start();
        await().until(() -> RedisProcess.ask(sentinelPort(), redis -> redis.info("sentinel"))
                .contains("slaves=1"));
    }

    private int sentinelPort() {
        return sentinel.ports().get(0);
    }

    @AfterEach
    void stop() throws IOException {
        sentinel.stop();
        master.close();
        replica.close();
    }

    private String yaml(String strategy) {
        return """
                spring.data.redis.sentinel: { master: %s, nodes: ["127.0.0.1:%d"] }
                ratelimit:
                  backend: redis
                  redis: { local-share: 0.2, strategy: %s }
                  policies:
                    per-user: { key: "query:user", rate: 10/1d }
                """.formatted(NAME, sentinelPort(), strategy);
    }

    private static List<Integer> statuses(int count, String user, RedisApplication... applications) {
        return IntStream.range(0, count)
                .map(i -> applications[i % applications.length].status("/a?user=" + user))
                .boxed()
                .toList();
    }

    @ParameterizedTest
    @CsvSource({"script, killed", "script, frozen", "transaction, killed", "transaction, frozen"})
    void aFailoverCostsNoLimitAndNoRequest(String strategy, String how) {
        int nowhere = TestRedis.freePort();
        try (RedisApplication one = RedisApplication.start(nowhere, yaml(strategy));
                RedisApplication other = RedisApplication.start(nowhere, yaml(strategy))) {
            one.awaitUp();
            other.awaitUp();
            assertThat(statuses(6, "alice", one, other)).containsOnly(200);
            master.ask(redis -> redis.waitForReplication(1, 1_000));

            Clients clients = new Clients(8, client -> (client % 2 == 0 ? one : other).status("/a?user=alice"));
            try (clients) {
                if (how.equals("killed")) {
                    master.kill();
                } else {
                    master.freeze();
                }
                awaitUse(replica, one, other);
            }
            assertThat(clients.answers()).extracting(Answer::status).containsOnly(200, 429);
            assertThat(clients.count(200))
                    .as("the 4 that were left, 2 from the memory of each, and what the replica hadn't heard of yet")
                    .isBetween(4L, 4L + 2 * 2 + 4);
            assertThat(statuses(20, "bob", one, other).stream()
                            .filter(status -> status == 200)
                            .count())
                    .as("his 10, and 2 from the memory of each where a busy machine doesn't answer in time")
                    .isBetween(10L, 10L + 2 * 2);
        }
    }

    /** Waits until both instances use the new master. */
    private static void awaitUse(RedisProcess redis, RedisApplication... applications) {
        for (RedisApplication application : applications) {
            await().ignoreExceptions().until(() -> {
                long before = redis.ask(RedisCommands::dbsize);
                application.status("/a?user=somebody" + before);
                return redis.ask(RedisCommands::dbsize) > before;
            });
        }
    }
}
