package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.PatientAwaits;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The rows of the table: expired ones, changes for all instances, and the clock. */
class JdbcTableTests {

    private static final Duration TIMEOUT = Duration.ofMinutes(2);

    private final BucketTable table = new BucketTable(TestDatabase.newTable());

    static Stream<DataSource> databases() {
        return Stream.concat(Stream.of(TestDatabase.h2()), TestDatabase.servers());
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
        JdbcBucketStore store = TestDatabase.store(
                connections, table, new TableIds("test", ""), TIMEOUT, () -> JdbcBucketStore.SERVER_TIME);
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("1/1s"), "user");
        List<Charge> charges = Stream.iterate(0, i -> i + 1)
                .limit(1_100)
                .map(i -> Charge.of(policy, "user" + i, 1))
                .toList();
        assertThat(store.take(charges).allowed()).isTrue();
        expireAll(source);
        ThrottlePolicy slow = ThrottlePolicy.of("slow", BucketSpec.of("1/1h"), "user");
        assertThat(store.take(List.of(Charge.of(slow, "alice", 1))).allowed()).isTrue();
        assertThat(rows(source)).isEqualTo(1_101);

        new Janitor(source, table, Janitor.PAUSE).sweep();

        assertThat(rows(source)).isEqualTo(1);
        assertThat(store.take(List.of(Charge.of(slow, "alice", 1))).allowed()).isFalse();
        connections.stop();
    }

    private void expireAll(DataSource source) {
        TestDatabase.execute(source, "UPDATE " + table.name() + " SET expires = TIMESTAMP '2020-01-01 00:00:00'");
    }

    private static Set<Thread> janitors() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("ratelimit-jdbc-janitor"))
                .collect(Collectors.toSet());
    }

    @Test
    void aStorageRemovesExpiredRowsByItselfUntilItIsClosed() {
        DataSource source = TestDatabase.h2();
        JdbcStorage.Settings settings = new JdbcStorage.Settings(table.name(), url -> true, 2, TIMEOUT, "shop", "");
        Charge one = Charge.of(ThrottlePolicy.of("all", BucketSpec.of("9/1h")), "", 1);
        Set<Thread> others = janitors();
        try (JdbcStorage storage =
                new JdbcStorage(source, settings, TestDatabase.deadline(TIMEOUT), Duration.ofMillis(50))) {
            for (int i = 0; i < 2; i++) {
                PatientAwaits.awaitSelfTest(storage);
                assertThat(storage.store().take(List.of(one)).allowed()).isTrue();
                expireAll(source);
                await().until(() -> rows(source) == 0);
                storage.stop();
                storage.start();
            }
            assertThat(others.containsAll(janitors())).isFalse();
        }
        await().until(() -> others.containsAll(janitors()));
    }

    @Test
    @Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
    void aConnectionThatNeverOpensEndsNoLaterSweep() throws Exception {
        DataSource source = TestDatabase.h2();
        ConnectionPool connections = TestDatabase.connections(source, table, TIMEOUT);
        JdbcBucketStore store = TestDatabase.store(
                connections, table, new TableIds("test", ""), TIMEOUT, () -> JdbcBucketStore.SERVER_TIME);
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("1/1s"), "user");
        store.take(List.of(Charge.of(policy, "alice", 1)));
        expireAll(source);
        CountDownLatch never = new CountDownLatch(1);
        AtomicInteger opened = new AtomicInteger();
        DataSource hanging = (DataSource) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {DataSource.class}, (proxy, method, arguments) -> {
                    if (opened.getAndIncrement() == 0) {
                        never.await();
                    }
                    return source.getConnection();
                });
        Janitor janitor = new Janitor(hanging, table, Janitor.PAUSE, Duration.ofSeconds(1));
        janitor.sweep();
        assertThat(rows(source)).isEqualTo(1);

        await().untilAsserted(() -> {
            janitor.sweep();
            assertThat(rows(source)).isZero();
        });
        never.countDown();
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
        new Janitor(source, table, Janitor.PAUSE).sweep();
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

    /** Otherwise a reader of the table could find the row of a guessed address, and a writer could change limits. */
    @Test
    void theSecretOfAStorageIsInItsIdsAndChanges() throws SQLException {
        DataSource source = TestDatabase.h2();
        JdbcStorage.Settings settings =
                new JdbcStorage.Settings(table.name(), url -> true, 2, TIMEOUT, "shop", "secret");
        Charge alice = Charge.of(ThrottlePolicy.of("api", BucketSpec.of("5/1d"), "user"), "alice", 1);
        try (JdbcStorage storage = new JdbcStorage(source, settings, TestDatabase.deadline(TIMEOUT))) {
            PatientAwaits.awaitSelfTest(storage);
            assertThat(storage.store().take(List.of(alice)).allowed()).isTrue();
            assertThat(storage.changes().sign("api", "rate=9/1d")).startsWith("rate=9/1d hmac=");
        }
        assertThat(hasRow(source, new TableIds("shop", "secret").of(BucketName.of(alice))))
                .isTrue();
        assertThat(hasRow(source, new TableIds("shop", "").of(BucketName.of(alice))))
                .isFalse();
    }

    private boolean hasRow(DataSource source, byte[] id) throws SQLException {
        try (Connection connection = source.getConnection();
                PreparedStatement select =
                        connection.prepareStatement("SELECT id FROM " + table.name() + " WHERE id = ?")) {
            select.setBytes(1, id);
            return select.executeQuery().next();
        }
    }

    /** As after a write by something else, or by a newer version: no other key suffers, and nothing is granted. */
    @ParameterizedTest
    @MethodSource("databases")
    void aValueOfAnotherFormIsAMistakeAndNoFullBucket(DataSource source) throws Exception {
        JdbcBucketStore store = store(source);
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("5/1h"), "user");
        Charge alice = Charge.of(policy, "alice", 5);
        assertThat(store.take(List.of(alice)).allowed()).isTrue();
        for (byte[] value : List.of(new byte[0], new byte[] {(byte) 0xb3, 0}, new byte[900])) {
            try (Connection connection = source.getConnection();
                    PreparedStatement update =
                            connection.prepareStatement("UPDATE " + table.name() + " SET state = ?")) {
                update.setBytes(1, value);
                assertThat(update.executeUpdate()).isOne();
            }
            assertThatThrownBy(() -> store.take(List.of(alice)))
                    .isInstanceOfSatisfying(BackendException.class, failed -> assertThat(failed.isMisconfiguration())
                            .isTrue())
                    .hasMessageContaining("is no bucket");
            assertThat(store.snapshot(Charge.of(policy, "bob", 5)).available()).isEqualTo(5);
        }
    }

    /** A key is a hash in the table. */
    @ParameterizedTest
    @MethodSource("databases")
    void aKeyMayBeAnyText(DataSource source) {
        JdbcBucketStore store = store(source);
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("1/1h"), "user");
        for (String key : List.of("", "\0", "a\0", "'; --", "\ud83d\ude00", "\ud83d", "\ud83e", "x".repeat(100_000))) {
            Charge charge = Charge.of(policy, key, 1);
            assertThat(store.take(List.of(charge)).allowed()).isTrue();
            assertThat(store.take(List.of(charge)).allowed()).isFalse();
        }
    }

    private JdbcBucketStore store(DataSource source) {
        return TestDatabase.store(
                TestDatabase.connections(source, table, TIMEOUT),
                table,
                new TableIds("test", ""),
                TIMEOUT,
                () -> JdbcBucketStore.SERVER_TIME);
    }

    @ParameterizedTest
    @MethodSource("schemas")
    void aTableMayBeInASchema(DataSource source) {
        String schema = TestDatabase.newTable();
        TestDatabase.execute(source, "CREATE SCHEMA " + schema);
        takeTwice(source, schema + ".bucket");
        TestDatabase.execute(source, "DELETE FROM " + schema + ".bucket");
    }

    static Stream<DataSource> schemas() {
        return Stream.of(TestDatabase.h2(), TestDatabase.postgres());
    }

    /** Tests of applications use H2 as if it were another database. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "PostgreSQL;DATABASE_TO_LOWER=TRUE;DEFAULT_NULL_ORDERING=HIGH",
                "MySQL;DATABASE_TO_LOWER=TRUE",
                "MariaDB;DATABASE_TO_LOWER=TRUE",
                "Oracle;DEFAULT_NULL_ORDERING=HIGH",
                "MSSQLServer;DATABASE_TO_UPPER=FALSE"
            })
    void anH2MayBehaveLikeAnotherDatabase(String mode) {
        JdbcDataSource source = new JdbcDataSource();
        source.setUrl("jdbc:h2:mem:" + TestDatabase.newTable() + ";DB_CLOSE_DELAY=-1;MODE=" + mode);
        takeTwice(source, "ratelimit_bucket");
    }

    private static void takeTwice(DataSource source, String table) {
        JdbcStorage.Settings settings = new JdbcStorage.Settings(table, url -> true, 2, TIMEOUT, "shop", "");
        Charge all = Charge.of(ThrottlePolicy.of("all", BucketSpec.of("2/1h")), "", 1);
        for (int i = 1; i >= 0; i--) {
            try (JdbcStorage storage = new JdbcStorage(source, settings, TestDatabase.deadline(TIMEOUT))) {
                PatientAwaits.awaitSelfTest(storage);
                assertThat(storage.store().take(List.of(all)).remaining()).isEqualTo(i);
            }
        }
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
    void aMariaDbIsOneAlsoByTheDriverOfMySql() {
        assertThat(Dialect.of("MySQL", "8.4.3")).isEqualTo(Dialect.MYSQL);
        assertThat(Dialect.of("MySQL", "5.5.5-10.11.6-MariaDB-0+deb12u1")).isEqualTo(Dialect.MARIADB);
        assertThat(Dialect.of("MariaDB", "10.11.6-MariaDB")).isEqualTo(Dialect.MARIADB);
    }

    @Test
    void anUnknownDatabaseIsRejected() {
        assertThat(Dialect.of("PostgreSQL", "16.4")).isEqualTo(Dialect.POSTGRESQL);
        assertThatThrownBy(() -> Dialect.of("Paper", "1"))
                .hasMessageContaining("'Paper'")
                .hasMessageContaining("MariaDB");
    }
}
