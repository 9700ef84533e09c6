package io.ratelimit.benchmarks;

import static io.ratelimit.benchmarks.Markdown.number;
import static io.ratelimit.benchmarks.Markdown.ratio;

/** The results of {@link RedisMeasurement} as text. Ratios are medians of the ratios within each round. */
record RedisResults(Samples samples) {

    private static final int PER_SECOND = 0;
    private static final int MEDIAN = 1;
    private static final int P99 = 2;
    private static final int FAILED = 3;

    private double ratioOf(String limiter, String to, String keys, int threads) {
        return samples.medianRatio(
                RedisMeasurement.name(limiter, keys, threads), RedisMeasurement.name(to, keys, threads), PER_SECOND);
    }

    void reach(Markdown text) {
        text.row(
                "on Redis: calls a second, with 1, 8, 32 threads",
                "at least 0.90 × a trivial EVALSHA",
                toFloor(RedisLimiters.SCRIPT) + "; by a bare script that decides, in shared calls, "
                        + toFloor(RedisLimiters.SHARED_GCRA));
        text.row(
                "on Redis, 10,000 keys, 8 threads",
                "at least 1.5 × bucket4j",
                toBucket4j(RedisMeasurement.MANY, 8) + " (Redisson " + toRedisson(RedisMeasurement.MANY, 8) + ")");
        text.row(
                "on Redis, one key, 32 threads",
                "at least 20 × bucket4j",
                toBucket4j(RedisMeasurement.HOT, 32) + " (Redisson " + toRedisson(RedisMeasurement.HOT, 32) + ")");
        text.row(
                "on Redis, one key, 8 threads, lease of 20 ms",
                "at least 1,000,000 a second, and 20 × a call of Redis for each decision",
                number(
                                samples.median(
                                        RedisMeasurement.name(RedisLimiters.LEASE, RedisMeasurement.HOT, 8),
                                        PER_SECOND),
                                0)
                        + " a second, "
                        + ratio(ratioOf(RedisLimiters.LEASE, RedisLimiters.SCRIPT, RedisMeasurement.HOT, 8)));
        text.row(
                "on Redis, lease of 20 ms, to the same without a lease, 8 threads",
                "10,000 keys of equal weight 0.97 ×, by Zipf's law 1.3 ×",
                toScript(RedisMeasurement.MANY) + ", " + toScript(RedisMeasurement.ZIPF));
        text.row(
                "on Redis, a flood on a drained key",
                "as from memory; 1 command a second",
                ratio(flood("on Redis", 0) / flood("in memory", 0)) + " as many a second; "
                        + number(flood("on Redis", 1), 1) + " commands");
        text.row(
                "memory of a key in Redis beyond its name",
                "140 bytes",
                bytes(RedisLimiters.SCRIPT) + " bytes (bucket4j " + bytes(RedisLimiters.BUCKET4J) + ", Redisson "
                        + bytes(RedisLimiters.REDISSON) + ")");
    }

    private String toFloor(String limiter) {
        StringBuilder reached = new StringBuilder();
        for (String keys : RedisMeasurement.KEYS) {
            reached.append(reached.isEmpty() ? "" : ", ").append(keys).append(": ");
            for (int threads : RedisMeasurement.THREADS) {
                double ratio = ratioOf(limiter, RedisLimiters.EVALSHA, keys, threads);
                reached.append(threads == 1 ? "" : " / ").append(ratio(ratio));
            }
        }
        return reached.toString();
    }

    private String toBucket4j(String keys, int threads) {
        return ratio(ratioOf(RedisLimiters.SCRIPT, RedisLimiters.BUCKET4J, keys, threads));
    }

    private String toRedisson(String keys, int threads) {
        return ratio(ratioOf(RedisLimiters.SCRIPT, RedisLimiters.REDISSON, keys, threads));
    }

    private String toScript(String keys) {
        return ratio(ratioOf(RedisLimiters.LEASE, RedisLimiters.SCRIPT, keys, 8));
    }

    private double flood(String where, int column) {
        return samples.median("flood, " + where, column);
    }

    private String bytes(String limiter) {
        return number(samples.median("memory, " + limiter, 0), 0);
    }

    void write(Markdown text) {
        if (samples.variants().isEmpty()) {
            return;
        }
        text.line("").line("## On a local Redis").line("");
        text.line("Redis and the calling threads share the processors of the machine. The floors, bucket4j and");
        text.line(
                "`ratelimit, script` use one connection, Redisson has its default pool, and `ratelimit, transaction` has");
        text.line(
                "eight connections. With a lease, a key that is used rarely needs a call of Redis for almost each decision.");
        for (String keys : RedisMeasurement.KEYS) {
            for (int threads : RedisMeasurement.THREADS) {
                table(text, keys, threads);
            }
        }
    }

    private void table(Markdown text, String keys, int threads) {
        text.table(
                "On a local Redis, " + keys + ", " + RedisMeasurement.threads(threads),
                "limiter",
                "calls a second",
                "±",
                "to the trivial EVALSHA",
                "median, µs",
                "p99, µs",
                "failed");
        for (String limiter : RedisLimiters.NAMES) {
            String name = RedisMeasurement.name(limiter, keys, threads);
            text.row(
                    limiter,
                    number(samples.median(name, PER_SECOND), 0),
                    number(samples.spread(name, PER_SECOND), 0),
                    ratio(ratioOf(limiter, RedisLimiters.EVALSHA, keys, threads)),
                    number(samples.median(name, MEDIAN), 0),
                    number(samples.median(name, P99), 0),
                    number(samples.median(name, FAILED), 0) + " %");
        }
    }
}
