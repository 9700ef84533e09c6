package io.ratelimit.autoconfigure.redis;

import static org.awaitility.Awaitility.await;

import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A real cluster of three primaries with a replica each. */
final class RedisClusterProcesses implements AutoCloseable {

    private static final int SLOTS = 16_384;

    private final List<RedisProcess> primaries;
    private final List<RedisProcess> replicas;

    /**
     * @param directory for what nodes want to remember
     */
    RedisClusterProcesses(Path directory) {
        this.primaries = IntStream.range(0, 3).mapToObj(i -> node(directory)).toList();
        this.replicas = IntStream.range(0, 3).mapToObj(i -> node(directory)).toList();
        meet();
        IntStream.range(0, 3).forEach(this::serve);
        await().until(() -> all().allMatch(RedisClusterProcesses::isReady));
    }

    private static RedisProcess node(Path directory) {
        RedisProcess node = RedisProcess.notStarted();
        return RedisProcess.started(
                "cluster-enabled yes",
                "cluster-config-file nodes-" + node.port() + ".conf",
                "cluster-node-timeout 1500",
                "cluster-replica-validity-factor 0",
                "repl-diskless-sync yes",
                "repl-diskless-sync-delay 0",
                "dir " + directory);
    }

    private void meet() {
        RedisProcess first = primaries.get(0);
        all().forEach(node -> first.ask(redis -> redis.clusterMeet("127.0.0.1", node.port())));
        await().until(() ->
                all().allMatch(node -> node.ask(redis -> redis.clusterInfo()).contains("cluster_known_nodes:6")));
    }

    private void serve(int i) {
        int[] slots = IntStream.range(SLOTS * i / 3, SLOTS * (i + 1) / 3).toArray();
        String id = primaries.get(i).ask(redis -> {
            redis.clusterAddSlots(slots);
            return redis.clusterMyId();
        });
        replicas.get(i).ask(redis -> redis.clusterReplicate(id));
    }

    private static boolean isReady(RedisProcess node) {
        return node.ask(redis -> {
            String replication = redis.info("replication");
            return redis.clusterInfo().contains("cluster_state:ok")
                    && (replication.contains("connected_slaves:1") || replication.contains("master_link_status:up"));
        });
    }

    RedisProcess primary(int i) {
        return primaries.get(i);
    }

    RedisProcess replica(int i) {
        return replicas.get(i);
    }

    /** Returns the value for spring.data.redis.cluster.nodes. */
    String nodes() {
        return all().map(node -> "127.0.0.1:" + node.port()).toList().toString();
    }

    private Stream<RedisProcess> all() {
        return Stream.of(primaries, replicas).flatMap(List::stream);
    }

    @Override
    public void close() {
        all().forEach(RedisProcess::close);
    }
}
