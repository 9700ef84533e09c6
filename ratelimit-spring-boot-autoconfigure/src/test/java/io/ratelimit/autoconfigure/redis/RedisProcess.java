package io.ratelimit.autoconfigure.redis;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.redis.TestRedis;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import redis.embedded.RedisServer;

/** A real Redis for one test, which can be stopped, killed, and started again at the same port. */
final class RedisProcess implements AutoCloseable {

    private static final Pattern CALLS = Pattern.compile("cmdstat_(?:evalsha|eval|exec):calls=(\\d+)");

    /** One for all questions: to create one takes longer than what some tests measure. */
    private static final RedisClient CLIENT = RedisClient.create();

    private final int port = TestRedis.freePort();
    private final List<String> settings;
    private RedisServer server;
    private long pid;

    private RedisProcess(List<String> settings) {
        this.settings = settings;
    }

    static RedisProcess started(String... settings) {
        RedisProcess process = notStarted(settings);
        process.start();
        return process;
    }

    static RedisProcess notStarted(String... settings) {
        return new RedisProcess(List.of(settings));
    }

    int port() {
        return port;
    }

    void start() {
        server = TestRedis.serverAt(port, settings.toArray(String[]::new));
        pid = Long.parseLong(ask(redis -> redis.info("server")).replaceAll("(?s).*process_id:(\\d+).*", "$1"));
    }

    <T> T ask(Function<RedisCommands<String, String>, T> question) {
        return ask(port, question);
    }

    static <T> T ask(int port, Function<RedisCommands<String, String>, T> question) {
        try (StatefulRedisConnection<String, String> connection = CLIENT.connect(RedisURI.create("127.0.0.1", port))) {
            return question.apply(connection.sync());
        }
    }

    List<String> keys() {
        return ask(redis -> redis.keys("*"));
    }

    /** Returns how many commands read or wrote buckets. */
    long calls() {
        Matcher found = CALLS.matcher(ask(redis -> redis.info("commandstats")));
        long calls = 0;
        while (found.find()) {
            calls += Long.parseLong(found.group(1));
        }
        return calls;
    }

    void freeze() {
        signal("-STOP");
    }

    void thaw() {
        signal("-CONT");
    }

    void kill() {
        signal("-KILL");
        try {
            server.stop();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
        server = null;
    }

    private void signal(String name) {
        try {
            new ProcessBuilder("kill", name, Long.toString(pid)).start().waitFor();
        } catch (IOException | InterruptedException failed) {
            throw new IllegalStateException(failed);
        }
    }

    @Override
    public void close() {
        if (server != null) {
            thaw();
            kill();
        }
    }
}
