package io.ratelimit.starter.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.distributed.jdbc.PrimaryKeyMapper;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.postgresql.Bucket4jPostgreSQL;
import io.ratelimit.jdbc.TestDatabase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The examples of {@code docs/database.md} for users of bucket4j. */
@Tag("slow")
class Bucket4jMigrationTests {

    private static final Path HERE = Path.of("src/test/java/io/ratelimit/starter/jdbc/Bucket4jMigrationTests.java");

    private static String example(String label) throws IOException {
        Matcher block = Pattern.compile("(?ms)^```" + label + "$\\R(.*?)^```$")
                .matcher(Files.readString(Path.of("../../docs/database.md")));
        assertThat(block.find()).isTrue();
        return block.group(1);
    }

    @Test
    void theCodeOfThePageIsThatOfThisTest() throws IOException {
        String here = Files.readString(HERE).replaceAll("\\s+", "");
        assertThat(example("java before").split("\\R\\R"))
                .allSatisfy(code -> assertThat(here).contains(code.replaceAll("\\s+", "")));
    }

    @Test
    void twoInstancesAllowAsManyCallsBeforeAndAfter() throws IOException {
        DataSource postgres = TestDatabase.postgres();
        TestDatabase.execute(postgres, "CREATE TABLE bucket(id text PRIMARY KEY, state bytea, expires_at bigint)");
        assertThat(statuses(before(postgres), before(postgres))).isEqualTo("TTTTTFFF");

        String yaml = example("yml after") + "  jdbc.table: " + TestDatabase.newTable() + "\n  jdbc.timeout: 5s\n";
        String url = TestDatabase.url(postgres);
        try (JdbcApplication one = JdbcApplication.start(url, yaml);
                JdbcApplication other = JdbcApplication.start(url, yaml)) {
            assertThat(statuses(() -> one.status("/a") == 200, () -> other.status("/a") == 200))
                    .isEqualTo("TTTTTFFF");
        }
    }

    private static BooleanSupplier before(DataSource dataSource) {
        String client = "10.0.0.1";
        ProxyManager<String> buckets = Bucket4jPostgreSQL.selectForUpdateBasedBuilder(dataSource)
                .table("bucket")
                .primaryKeyMapper(PrimaryKeyMapper.STRING)
                .build();
        BucketConfiguration limit = BucketConfiguration.builder()
                .addLimit(one -> one.capacity(5).refillGreedy(5, Duration.ofDays(1)))
                .build();
        return () -> {
            boolean allowed = buckets.getProxy(client, () -> limit).tryConsume(1);
            return allowed;
        };
    }

    /** Returns the answers to eight calls, each at the other instance. */
    private static String statuses(BooleanSupplier one, BooleanSupplier other) {
        return Stream.of(one, other, one, other, one, other, one, other)
                .map(call -> call.getAsBoolean() ? "T" : "F")
                .reduce("", String::concat);
    }
}
