package io.ratelimit.benchmarks;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.benchmarks.Load.Sample;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Limits on a Redis of this machine's, beside others and floors. In each round all take their turns, so that what else
 * the machine does hits all alike. Prints, with tabs between, a name and calls a second, median and 99th percentile in
 * microseconds, and the percentage that failed; of a flood on a drained key the calls and the commands to Redis a second;
 * of one key the bytes beyond its name.
 *
 * @param roundMillis how long a turn takes
 */
record RedisMeasurement(int rounds, long roundMillis, int keys, PrintStream out) {

    static final List<Integer> THREADS = List.of(1, 8, 32);
    static final String MANY = "10,000 keys";
    static final String ZIPF = "10,000 keys by Zipf's law";
    static final String HOT = "one key";
    static final List<String> KEYS = List.of(MANY, ZIPF, HOT);

    /** The compiler needs some seconds for each limiter. */
    private static final int WARM_UPS = 3;

    private static final int THREADS_OF_FLOOD = 8;

    /** Writes to the file named. */
    public static void main(String[] args) throws IOException {
        try (PrintStream out = new PrintStream(new FileOutputStream(args[0]), true, UTF_8)) {
            new RedisMeasurement(of("ROUNDS", 5), of("ROUND_MILLIS", 300), 10_000, out).run();
        }
        System.exit(0);
    }

    private static int of(String variable, int otherwise) {
        String value = System.getenv(variable);
        return value == null ? otherwise : Integer.parseInt(value);
    }

    void run() throws IOException {
        try (LocalRedis redis = LocalRedis.start();
                RedisLimiters limiters = new RedisLimiters(redis.port())) {
            memory(limiters);
            String[] many = ClientKeys.of(keys);
            limiters.prepare(many);
            Map<String, Predicate<String>> all = limiters.all();
            for (int round = -WARM_UPS; round < rounds; round++) {
                round(all, many, round < 0);
            }
            flood(
                    "in memory",
                    OursOnRedis.refusedFromMemory(),
                    limiters.connection().sync());
            flood(
                    "on Redis",
                    limiters.script()::isRefused,
                    limiters.connection().sync());
        }
    }

    private void round(Map<String, Predicate<String>> all, String[] many, boolean toWarmUp) {
        for (int threads : THREADS) {
            for (String some : KEYS) {
                Load load = new Load(threads, some(many, some));
                all.forEach((name, limiter) -> {
                    Sample sample = load.run(limiter, roundMillis);
                    if (!toWarmUp) {
                        print(name(name, some, threads), sample);
                    }
                });
            }
        }
    }

    private static String[] some(String[] keys, String some) {
        return switch (some) {
            case HOT -> new String[] {keys[0]};
            case ZIPF ->
                IntStream.of(ClientKeys.Order.ZIPF.of(keys.length, 1 << 16))
                        .mapToObj(i -> keys[i])
                        .toArray(String[]::new);
            default -> keys;
        };
    }

    static String name(String limiter, String keys, int threads) {
        return limiter + ", " + keys + ", " + threads(threads);
    }

    static String threads(int count) {
        return count + (count == 1 ? " thread" : " threads");
    }

    private void print(String name, Sample sample) {
        print(name, sample.perSecond(), sample.medianMicros(), sample.p99Micros(), sample.failedPercent());
    }

    private void print(String name, double... numbers) {
        StringBuilder line = new StringBuilder(name);
        for (double number : numbers) {
            line.append('\t').append(String.format(Locale.ROOT, "%.1f", number));
        }
        out.println(line);
    }

    private void flood(String where, Predicate<String> refused, RedisCommands<String, byte[]> redis) {
        Load load = new Load(THREADS_OF_FLOOD, new String[] {"drained"});
        load.run(refused, roundMillis);
        long before = scripts(redis);
        long start = System.nanoTime();
        Sample sample = load.run(refused, 10 * roundMillis);
        double seconds = (System.nanoTime() - start) / 1e9;
        print("flood, " + where, sample.perSecond(), (scripts(redis) - before) / seconds);
    }

    private static long scripts(RedisCommands<String, byte[]> redis) {
        return redis.info("commandstats")
                .lines()
                .filter(line -> line.startsWith("cmdstat_evalsha:"))
                .mapToLong(line -> Long.parseLong(line.substring(line.indexOf("calls=") + 6, line.indexOf(','))))
                .findFirst()
                .orElse(0);
    }

    private void memory(RedisLimiters limiters) {
        RedisCommands<String, byte[]> redis = limiters.connection().sync();
        limiters.keepers().forEach((name, limiter) -> {
            List<@Nullable Long> bytes;
            do {
                redis.flushall();
                limiters.prepare(name.equals(RedisLimiters.REDISSON) ? new String[] {"10.0.0.1"} : new String[0]);
                limiter.test("10.0.0.1");
                bytes = beyondNames(redis);
            } while (bytes.isEmpty()
                    || bytes.contains(null)); // a bucket that is full again after a millisecond has expired
            print("memory, " + name, bytes.stream().mapToLong(Long::longValue).sum());
        });
        redis.flushall();
    }

    /** Returns null for a key that has expired meanwhile. */
    private static List<@Nullable Long> beyondNames(RedisCommands<String, byte[]> redis) {
        List<@Nullable Long> bytes = new ArrayList<>();
        for (String key : redis.keys("*")) {
            Long all = redis.memoryUsage(key);
            bytes.add(all == null ? null : all - key.length());
        }
        return bytes;
    }
}
