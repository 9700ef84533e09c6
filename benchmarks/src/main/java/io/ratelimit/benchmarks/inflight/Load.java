package io.ratelimit.benchmarks.inflight;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.benchmarks.LocalRedis;
import io.ratelimit.benchmarks.inflight.SharedCounts.Count;
import io.ratelimit.benchmarks.inflight.Slots.Way;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Slots that three processes share on a real Redis, by each way in each situation. Prints for each of them the calls of Redis a
 * request, the percent of requests denied, the percent denied although a slot was free, how many ran at most beyond the
 * limit, and how many requests there were.
 */
public final class Load implements AutoCloseable {

    static final int PROCESSES = 3;

    private static final int WARM_UP_SECONDS = 10;
    private static final Pattern CALLS = Pattern.compile("cmdstat_(evalsha|eval|zrem):calls=(\\d+)");

    private final Way way;
    private final Situation situation;
    private final LocalRedis redis = LocalRedis.start();
    private final RedisClient client = RedisClient.create(RedisURI.create("redis://127.0.0.1:" + redis.port()));
    private final RedisCommands<String, String> commands = client.connect().sync();
    private final Path file = Files.createTempFile("slots", ".counts");
    private final SharedCounts counts = new SharedCounts(file);
    private final List<Process> processes = new ArrayList<>();
    private final List<Integer> numbers = new ArrayList<>();
    private int started;

    private Load(Way way, Situation situation) throws IOException {
        this.way = way;
        this.situation = situation;
    }

    public static void main(String[] args) throws Exception {
        LoadProcess.withoutLog();
        for (Situation situation : Situation.values()) {
            for (Way way : Way.values()) {
                try (Load load = new Load(way, situation)) {
                    load.run();
                }
            }
        }
    }

    private void run() throws Exception {
        for (int i = 0; i < PROCESSES; i++) {
            start();
        }
        TimeUnit.SECONDS.sleep(WARM_UP_SECONDS);
        long calls = calls();
        long[] before = counts();
        for (int second = 1; second <= situation.seconds; second++) {
            TimeUnit.SECONDS.sleep(1);
            if (situation.killEverySeconds > 0
                    && second % situation.killEverySeconds == 0
                    && second < situation.seconds) {
                replaceOldest();
            }
        }
        long[] after = counts();
        double requests = after[Count.REQUESTS.ordinal()] - before[Count.REQUESTS.ordinal()];
        double denied = after[Count.DENIED.ordinal()] - before[Count.DENIED.ordinal()];
        double inVain = after[Count.DENIED_IN_VAIN.ordinal()] - before[Count.DENIED_IN_VAIN.ordinal()];
        System.out.printf(
                "%s, %s\t%.3f\t%.2f\t%.2f\t%d\t%.0f%n",
                situation.title,
                way == Way.REGISTERS ? "registers" : "a set with expiry",
                (calls() - calls) / requests,
                100 * denied / requests,
                100 * inVain / requests,
                Math.max(0, counts.most(Count.MOST_AT_ONCE) - situation.limit),
                requests);
    }

    private long[] counts() {
        long[] sums = new long[Count.values().length];
        for (Count count : Count.values()) {
            sums[count.ordinal()] = counts.sum(count);
        }
        return sums;
    }

    private long calls() {
        long calls = 0;
        Matcher found = CALLS.matcher(commands.info("commandstats"));
        while (found.find()) {
            calls += Long.parseLong(found.group(2));
        }
        return calls;
    }

    private void start() throws IOException {
        int number = started++;
        Process process = new ProcessBuilder(
                        System.getProperty("java.home") + "/bin/java",
                        "-Xmx128m",
                        "-XX:+UseSerialGC",
                        "-cp",
                        System.getProperty("java.class.path"),
                        LoadProcess.class.getName(),
                        file.toString(),
                        Integer.toString(number),
                        way.name(),
                        situation.name(),
                        Integer.toString(redis.port()))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        processes.add(process);
        numbers.add(number);
    }

    /** Kills the oldest process, whose calls end with it, and starts another one. */
    private void replaceOldest() throws IOException, InterruptedException {
        Process killed = processes.remove(0);
        killed.destroyForcibly().waitFor();
        counts.set(numbers.remove(0), Count.RUNNING, 0);
        start();
    }

    @Override
    public void close() throws IOException {
        processes.forEach(Process::destroyForcibly);
        client.shutdown(0, 1, TimeUnit.SECONDS);
        redis.close();
        Files.delete(file);
    }
}
