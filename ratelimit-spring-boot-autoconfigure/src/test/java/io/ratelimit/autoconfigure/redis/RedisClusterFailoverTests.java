package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.autoconfigure.redis.Clients.Answer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Limits on a cluster that loses or changes a primary under load. */
@Tag("slow")
class RedisClusterFailoverTests {

    private static final int USERS = 30;
    private static final int LIMIT = 10;
    private static final int UNHEARD_OF = 20;

    @TempDir
    private static Path directory;

    @AutoClose
    private static RedisClusterProcesses cluster;

    private static final AtomicInteger strangers = new AtomicInteger();

    @BeforeAll
    static void start() {
        cluster = new RedisClusterProcesses(directory);
    }

    private String yaml() {
        return """
                spring.data.redis.cluster.nodes: %s
                ratelimit:
                  backend: redis
                  redis: { local-share: 0.2, timeout: 3s }
                  policies:
                    per-user: { key: "query:user", rate: %d/1d }
                """.formatted(cluster.nodes(), LIMIT);
    }

    /** Each kind uses its own shard. */
    private enum Failover {
        HANDED_OVER,
        FROZEN,
        KILLED;

        void happen() {
            switch (this) {
                case KILLED -> cluster.primary(ordinal()).kill();
                case FROZEN -> cluster.primary(ordinal()).freeze();
                default -> handOver(cluster.replica(ordinal()));
            }
        }

        /** Makes a replica the primary; on a busy machine Redis gives an attempt up after 5 seconds. */
        private static void handOver(RedisProcess replica) {
            await().pollDelay(Duration.ZERO)
                    .pollInterval(Duration.ofSeconds(6))
                    .until(() -> replica.ask(redis -> {
                        boolean primary = redis.info("replication").contains("role:master");
                        return primary || !"OK".equals(redis.clusterFailover(false));
                    }));
        }
    }

    @ParameterizedTest
    @EnumSource
    void aFailoverCostsNoRequestAndHardlyALimit(Failover failover) {
        int nowhere = 1;
        try (RedisApplication one = RedisApplication.start(nowhere, yaml());
                RedisApplication other = RedisApplication.start(nowhere, yaml())) {
            AtomicInteger next = new AtomicInteger();
            Clients clients = new Clients(8, client -> (client % 2 == 0 ? one : other)
                    .status("/a?user=" + failover + next.getAndIncrement() % USERS));
            try (clients) {
                clients.awaitAnswers(4 * USERS);
                failover.happen();
                awaitUse(cluster.replica(failover.ordinal()), one);
                awaitUse(cluster.replica(failover.ordinal()), other);
                clients.awaitAnswers(LIMIT * USERS);
            }
            assertThat(clients.answers()).extracting(Answer::status).containsOnly(200, 429);
            assertThat(clients.count(200))
                    .as("each user's limit, 2 from the memory of each instance, and what a replica hadn't heard of yet")
                    .isBetween((long) LIMIT * USERS, (long) (LIMIT + 2 * 2) * USERS + UNHEARD_OF);
            assertLimitsAreShared(failover, one, other);
        }
    }

    /** Waits until an instance takes from buckets in the cluster. */
    private void awaitUse(RedisProcess redis, RedisApplication application) {
        await().ignoreExceptions().until(() -> {
            long before = redis.ask(commands -> commands.dbsize());
            for (int i = 0; i < 10; i++) {
                application.status("/a?user=stranger" + strangers.incrementAndGet());
            }
            return redis.ask(commands -> commands.dbsize()) > before;
        });
    }

    private static void assertLimitsAreShared(Failover failover, RedisApplication one, RedisApplication other) {
        for (int user = 0; user < 12; user++) {
            String path = "/a?user=after" + failover + user;
            long granted = IntStream.range(0, LIMIT + 4)
                    .filter(i -> (i % 2 == 0 ? one : other).status(path) == 200)
                    .count();
            assertThat(granted).as(path).isEqualTo(LIMIT);
        }
    }
}
