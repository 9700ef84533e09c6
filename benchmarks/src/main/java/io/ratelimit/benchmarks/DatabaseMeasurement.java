package io.ratelimit.benchmarks;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.ratelimit.benchmarks.Load.Sample;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.sql.SQLException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Limits in a PostgreSQL of this machine's, beside bucket4j and the floor, as {@link RedisMeasurement} measures those on Redis.
 * The variable POSTGRES names another one by its URL.
 */
record DatabaseMeasurement(int rounds, long roundMillis, int keys, PrintStream out) {

    static final int THREADS = 8;

    /**
     * The rounds before a measured one. The JVM compiles a limiter for ten seconds on two processors that it shares with the
     * database, and would then be what is measured.
     */
    private static final int WARM_UPS = 2;

    /** Writes to the file named. */
    public static void main(String[] args) throws Exception {
        try (PrintStream out = new PrintStream(new FileOutputStream(args[0]), true, UTF_8)) {
            new DatabaseMeasurement(of("ROUNDS", 5), of("ROUND_MILLIS", 1_000), 10_000, out).run();
        }
        System.exit(0);
    }

    private static int of(String variable, int otherwise) {
        String value = System.getenv(variable);
        return value == null ? otherwise : Integer.parseInt(value);
    }

    void run() throws IOException, SQLException {
        String other = System.getenv("POSTGRES");
        if (other == null) {
            try (EmbeddedPostgres server = EmbeddedPostgres.start()) {
                run((PGSimpleDataSource) server.getPostgresDatabase());
            }
        } else {
            PGSimpleDataSource source = new PGSimpleDataSource();
            source.setUrl(other);
            run(source);
        }
    }

    private void run(PGSimpleDataSource source) throws SQLException {
        try (DatabaseLimiters limiters = new DatabaseLimiters(source)) {
            String[] many = ClientKeys.of(keys);
            limiters.prepare(many);
            Map<String, Predicate<String>> all = limiters.all();
            for (int round = -WARM_UPS * rounds; round < rounds; round++) {
                for (String[] some : List.of(many, new String[] {many[0]})) {
                    boolean measured = round >= 0;
                    all.forEach((name, limiter) -> {
                        Sample sample = new Load(THREADS, some).run(limiter, roundMillis);
                        if (measured) {
                            print(name(name, some.length == 1 ? RedisMeasurement.HOT : RedisMeasurement.MANY), sample);
                        }
                    });
                }
            }
        }
    }

    static String name(String limiter, String keys) {
        return RedisMeasurement.name(limiter, keys, THREADS);
    }

    private void print(String name, Sample sample) {
        out.printf(
                Locale.ROOT,
                "%s\t%.1f\t%.1f\t%.1f\t%.1f%n",
                name,
                sample.perSecond(),
                sample.medianMicros(),
                sample.p99Micros(),
                sample.failedPercent());
    }
}
