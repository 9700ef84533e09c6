package io.ratelimit.redis;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/**
 * Ports for servers of tests. Some servers are started later, or stopped and started again, so a port that is free now may
 * belong to another test already. A JVM therefore has blocks of ports to itself. It keeps the first port of a block bound
 * until it ends, and returns each of the other ports once. All ports are below the ephemeral ones, like the second port of
 * a cluster node, which is 10,000 higher.
 */
final class TestPorts {

    private static final int MIN_PORT = 12_000;
    private static final int BLOCK = 100;
    private static final int BLOCKS = 100;

    /** Referenced, because the garbage collector would close them. */
    private static final List<ServerSocket> bound = new ArrayList<>();

    private static int next;
    private static int end;

    private TestPorts() {}

    static synchronized int next() {
        while (true) {
            if (next == end) {
                claim();
            }
            int port = next++;
            if (isFree(port) && isFree(port + 10_000)) {
                return port;
            }
        }
    }

    private static void claim() {
        int first = ThreadLocalRandom.current().nextInt(BLOCKS);
        for (int i = 0; i < BLOCKS; i++) {
            int block = MIN_PORT + (first + i) % BLOCKS * BLOCK;
            ServerSocket socket = bind(block);
            if (socket != null) {
                bound.add(socket);
                next = block + 1;
                end = block + BLOCK;
                return;
            }
        }
        throw new IllegalStateException("no block of " + BLOCK + " ports is free from " + MIN_PORT + " on");
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = bind(port)) {
            return socket != null;
        } catch (IOException closing) {
            return false;
        }
    }

    private static @Nullable ServerSocket bind(int port) {
        try {
            return new ServerSocket(port, 1, InetAddress.getLoopbackAddress());
        } catch (IOException taken) {
            return null;
        }
    }
}
