package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BucketSpec;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The rows of the table: expired ones, changes for all instances, and the clock. */
class JdbcTableTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    private final BucketTable table = new BucketTable(TestDatabase.newTable());

    static Stream<DataSource> databases() {
        return Stream.of(TestDatabase.h2(), TestDatabase.postgres());
    }

    private long rows(DataSource source) throws SQLException {
        try (Connection connection = source.getConnection();
                ResultSet count = connection.createStatement().executeQuery("SELECT count(*) FROM " + table.name())) {
            count.next();
            return count.getLong(1);
        }
    }

    /** More rows than the janitor removes at once. */
    @ParameterizedTest
    @MethodSource("databases")
    void expiredRowsAreRemovedAndNoOthers(DataSource source) throws Exception {
        ConnectionPool connections = TestDatabase.connections(source, table, TIMEOUT);
        JdbcBucketStore store = new JdbcBucketStore(
                connections,
                table,
                new TableIds("test", ""),
                TestDatabase.deadline(TIMEOUT),
                () -> JdbcBucketStore.SERVER_TIME);
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("1/1s"), "user");
        List<Charge> charges = Stream.iterate(0, i -> i + 1)
                .limit(1_100)
                .map(i -> Charge.of(policy, "user" + i, 1))
                .toList();
        assertThat(store.take(charges).allowed()).isTrue();
        TestDatabase.execute(source, "UPDATE " + table.name() + " SET expires = TIMESTAMP '2020-01-01 00:00:00'");
        ThrottlePolicy slow = ThrottlePolicy.of("slow", BucketSpec.of("1/1h"), "user");
        assertThat(store.take(List.of(Charge.of(slow, "alice", 1))).allowed()).isTrue();
        assertThat(rows(source)).isEqualTo(1_101);

        new Janitor(source, table).sweep();

        assertThat(rows(source)).isEqualTo(1);
        assertThat(store.take(List.of(Charge.of(slow, "alice", 1))).allowed()).isFalse();
        connections.stop();
    }

    @ParameterizedTest
    @MethodSource("databases")
    void changesAreKeptByTheirLimitsAndTheTimeIsThatOfTheDatabase(DataSource source) {
        ConnectionPool connections = TestDatabase.connections(source, table, TIMEOUT);
        JdbcChanges changes = new JdbcChanges(connections, table, new TableIds("shop", "key"), "shop", "key");
        ChangeBoard ofOther = new JdbcChanges(connections, table, new TableIds("bank", "key"), "bank", "key");

        changes.put("api", changes.sign("api", "first")).join();
        changes.put("api", changes.sign("api", "second")).join();
        ChangeBoard.Posted posted = changes.read(List.of("api", "other")).join();
        assertThat(posted.changes()).containsOnlyKeys("api");
        assertThat(changes.verify("api", posted.changes().get("api"))).isEqualTo("second");
        assertThat(posted.now())
                .isBetween(Instant.now().minusSeconds(5), Instant.now().plusSeconds(5));
        assertThat(ofOther.read(List.of("api")).join().changes()).isEqualTo(Map.of());
        assertThatThrownBy(() -> changes.verify("api", "forged"))
                .hasMessageContaining("ratelimit.jdbc.key-secret")
                .hasMessageContaining("remove it from the database");

        assertThat(changes.remove("api").join()).isTrue();
        assertThat(changes.remove("api").join()).isFalse();
        assertThat(changes.read(List.of()).join().changes()).isEmpty();
        connections.stop();
    }

    @ParameterizedTest
    @EnumSource
    void aDialectHasAScriptAndStatements(Dialect dialect) {
        assertThat(Dialect.class.getResource(dialect.script())).isNotNull();
        assertThat(dialect.select("t", 3)).endsWith("LEFT JOIN t b ON b.id IN (?, ?, ?)");
        assertThat(dialect.deleteExpired("t", 7))
                .contains("t", "7", "expires < ?")
                .doesNotContain("%");
    }

    @Test
    void anUnknownDatabaseIsRejected() {
        assertThat(Dialect.of("PostgreSQL")).isEqualTo(Dialect.POSTGRESQL);
        assertThatThrownBy(() -> Dialect.of("Paper"))
                .hasMessageContaining("'Paper'")
                .hasMessageContaining("MariaDB");
    }
}
