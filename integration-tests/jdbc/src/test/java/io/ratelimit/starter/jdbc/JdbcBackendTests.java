package io.ratelimit.starter.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Backend.Condition;
import io.ratelimit.Throttlers;
import io.ratelimit.jdbc.TestDatabase;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Limits in a healthy database. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class JdbcBackendTests {

    private static final String DAILY = """
            ratelimit:
              backend: jdbc
              jdbc: { table: %s, initialize-schema: always, timeout: 5s }
              policies:
                per-ip: { key: ip, rate: 5/1d, paths: /a }
            """;

    private enum Database {
        H2(TestDatabase.h2()),
        POSTGRESQL(TestDatabase.postgres());

        private final DataSource source;

        Database(DataSource source) {
            this.source = source;
        }

        String url() {
            return TestDatabase.url(source);
        }
    }

    private static List<Integer> statuses(int count, JdbcApplication... applications) {
        return IntStream.range(0, count)
                .map(i -> applications[i % applications.length].status("/a"))
                .boxed()
                .toList();
    }

    @ParameterizedTest
    @EnumSource
    void twoInstancesShareALimit(Database database) {
        String yaml = DAILY.formatted(TestDatabase.newTable());
        try (JdbcApplication one = JdbcApplication.start(database.url(), yaml);
                JdbcApplication other = JdbcApplication.start(database.url(), yaml)) {
            assertThat(statuses(8, one, other)).containsExactly(200, 200, 200, 200, 200, 429, 429, 429);
            HttpResponse<String> refusal = other.get("/a");
            assertThat(refusal.headers().firstValue("RateLimit"))
                    .hasValueSatisfying(value -> assertThat(value).startsWith("\"per-ip\";r=0;t="));
            assertThat(refusal.body()).contains("#quota-exceeded");
            assertThat(one.condition()).isEqualTo(Condition.UP);

            one.bean(Throttlers.class).reset("per-ip", "127.0.0.1");
            assertThat(one.status("/a")).isEqualTo(200);
        }
    }

    /** Both applications have a policy of one name, and neither takes from the other. */
    @ParameterizedTest
    @EnumSource
    void applicationsOfOtherNamesShareATableButNoLimit(Database database) {
        String yaml = DAILY.formatted(TestDatabase.newTable());
        try (JdbcApplication one = JdbcApplication.start(database.url(), yaml);
                JdbcApplication other =
                        JdbcApplication.start(database.url(), yaml + "spring.application.name: bank\n")) {
            assertThat(statuses(6, one)).containsExactly(200, 200, 200, 200, 200, 429);
            assertThat(statuses(6, other)).containsExactly(200, 200, 200, 200, 200, 429);
        }
    }

    @Test
    void applicationsWithAnotherPrefixOrSecretShareNoLimit() {
        String yaml = DAILY.formatted(TestDatabase.newTable());
        for (String property : List.of("", "ratelimit.jdbc.key-prefix: bank", "ratelimit.jdbc.key-secret: secret")) {
            try (JdbcApplication application = JdbcApplication.start(Database.H2.url(), yaml + property + "\n")) {
                assertThat(statuses(6, application)).as(property).containsExactly(200, 200, 200, 200, 200, 429);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void aChangeForAllInstancesIsFollowedByTheOther(Database database) {
        String yaml = DAILY.formatted(TestDatabase.newTable());
        try (JdbcApplication one = JdbcApplication.start(database.url(), yaml);
                JdbcApplication other = JdbcApplication.start(database.url(), yaml)) {
            HttpResponse<String> changed =
                    one.post("/actuator/ratelimits/per-ip", "{\"rate\": \"2/1d\", \"for\": \"all\"}");
            assertThat(changed.statusCode()).as(changed.body()).isEqualTo(200);
            await().atMost(Duration.ofSeconds(10))
                    .until(() -> other.bean(Throttlers.class)
                                    .get("per-ip")
                                    .policy()
                                    .spec()
                                    .rate()
                                    .tokens()
                            == 2);
        }
    }

    @Test
    void aPolicyChoosesForItselfAndMemoryIsAskedFirst() {
        String yaml = """
                ratelimit:
                  jdbc.timeout: 5s
                  policies:
                    quota: { key: ip, rate: 5/1d, backend: jdbc, paths: /a }
                    node: { rate: 3/1d, paths: /a }
                """;
        String url = Database.H2.url();
        try (JdbcApplication one = JdbcApplication.start(url, yaml);
                JdbcApplication other = JdbcApplication.start(url, yaml)) {
            assertThat(statuses(4, one)).containsExactly(200, 200, 200, 429);
            assertThat(statuses(4, other)).containsExactly(200, 200, 429, 429);
            assertThat(other.bean(Throttlers.class).snapshot("node").available())
                    .as("given back where the database denied")
                    .isEqualTo(1);
        }
    }

    /** The row lacks the tokens that come back within the lease, so a burst is smaller by them. */
    @ParameterizedTest
    @EnumSource
    void instancesWithLeasesShareALimitAndNeverGrantMore(Database database) {
        String yaml = """
                ratelimit:
                  backend: jdbc
                  jdbc: { table: %s, initialize-schema: always, timeout: 5s }
                  policies:
                    hot: { rate: 400/1d, lease: 1m }
                """.formatted(TestDatabase.newTable());
        try (JdbcApplication one = JdbcApplication.start(database.url(), yaml);
                JdbcApplication other = JdbcApplication.start(database.url(), yaml)) {
            assertThat(statuses(60, one)).containsOnly(200);
            assertThat(one.bean(Throttlers.class).leased("hot")).isPositive();
            assertThat(one.get("/actuator/ratelimits/hot").body()).contains("\"lease\":\"1m\"");
            long allowed = statuses(900, one, other).stream()
                    .filter(status -> status == 200)
                    .count();
            assertThat(60 + allowed).isBetween(300L, 400L);
        }
    }

    /** The limits have connections of their own: an application that has used up its pool is still limited. */
    @Test
    void aLimitNeedsNoConnectionOfTheApplicationsPool() throws SQLException {
        String yaml = DAILY.formatted(TestDatabase.newTable()) + "spring.datasource.hikari.maximum-pool-size: 1\n";
        try (JdbcApplication application = JdbcApplication.start(Database.POSTGRESQL.url(), yaml);
                var used = application.bean(DataSource.class).getConnection()) {
            assertThat(used.isValid(1)).isTrue();
            assertThat(statuses(6, application)).containsExactly(200, 200, 200, 200, 200, 429);
        }
    }

    /** The properties of the driver are those of the application's pool, such as those of TLS. */
    @Test
    void thereAreAsManyConnectionsAsConfiguredWithThePropertiesOfTheDriver() throws SQLException {
        String name = TestDatabase.newTable();
        String yaml = DAILY.formatted(name).replace("timeout: 5s", "timeout: 5s, pool-size: 3")
                + "spring.datasource.hikari.data-source-properties.ApplicationName: " + name + "\n";
        try (JdbcApplication application = JdbcApplication.start(Database.POSTGRESQL.url(), yaml);
                Connection watching = TestDatabase.postgres().getConnection();
                Statement statement = watching.createStatement()) {
            await().until(
                            () -> { // another one removes expired rows at times
                                ResultSet rows = statement.executeQuery(
                                        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + name
                                                + "'");
                                return rows.next() && rows.getInt(1) == 3;
                            });
            assertThat(application.status("/a")).isEqualTo(200);
        }
    }

    @Test
    void theStartReportNamesThePlaceOfTheBuckets(CapturedOutput output) {
        JdbcApplication.start(Database.H2.url(), """
                        ratelimit:
                          backend: jdbc
                          on-backend-failure: deny
                          policies:
                            shared: { key: ip, rate: 5/1d }
                            own: { rate: 5/1d, backend: local }
                        """).close();
        assertThat(output)
                .contains("buckets on the database (denies all while the database is unavailable)")
                .contains("own: 5/1d, capacity 5, one bucket; all requests; before authentication; in memory")
                .doesNotContain("the database is unavailable (", "has no name", "The limits use connections of");
    }

    /** By default, the table is created only in an H2 in memory. */
    @ParameterizedTest
    @ValueSource(strings = {"", "initialize-schema: embedded, ", "initialize-schema: never, "})
    void aMissingTableStopsTheStartAndTheReportNamesTheScript(String property, CapturedOutput output) {
        String yaml = DAILY.formatted("missing").replace("initialize-schema: always, ", property);
        assertThat(org.assertj.core.api.Assertions.catchThrowable(() ->
                        JdbcApplication.start(Database.POSTGRESQL.url(), yaml).close()))
                .isNotNull();
        assertThat(output)
                .contains("'backend: jdbc' is set, but the table 'missing' doesn't exist in the database; the script"
                        + " 'io/ratelimit/jdbc/schema-postgresql.sql' of ratelimit-jdbc creates it.")
                .contains("Run the script, for example as a migration of Flyway, or set"
                        + " 'ratelimit.jdbc.initialize-schema: always'");
    }

    @Test
    void aUserThatMayNotCreateTablesStopsTheStart(CapturedOutput output) {
        String name = TestDatabase.newTable();
        TestDatabase.execute(
                TestDatabase.postgres(),
                "CREATE SCHEMA %1$s; CREATE ROLE %1$s LOGIN; GRANT USAGE ON SCHEMA %1$s TO %1$s".formatted(name));
        String url = Database.POSTGRESQL.url().replaceAll("user=\\w+", "user=" + name);
        assertThat(org.assertj.core.api.Assertions.catchThrowable(
                        () -> JdbcApplication.start(url, DAILY.formatted(name + ".bucket"))
                                .close()))
                .isNotNull();
        assertThat(output)
                .contains("the table '" + name
                        + ".bucket' doesn't exist in the database, which refuses to create it by the script"
                        + " 'io/ratelimit/jdbc/schema-postgresql.sql' of ratelimit-jdbc: ERROR:"
                        + " permission denied for schema " + name)
                .contains("as a migration of Flyway, or let the data source lead to the primary server, by a"
                        + " user who may create tables");
    }

    @ParameterizedTest
    @EnumSource
    void theActuatorShowsTheTokensInTheDatabaseAndItsCalls(Database database) {
        String yaml = DAILY.formatted(TestDatabase.newTable()).replace("per-ip: { key: ip, ", "all: { ");
        try (JdbcApplication application = JdbcApplication.start(database.url(), yaml)) {
            assertThat(statuses(2, application)).containsOnly(200);
            assertThat(application.get("/actuator/ratelimits/all").body()).contains("\"available\":3");
            assertThat(application.get("/actuator/ratelimits").body())
                    .contains("\"available\":3", "\"backend\":\"jdbc\"", "\"name\":\"the database\"");
            assertThat(application.get("/actuator/health").body()).contains("\"backend\":\"the database\"");
            assertThat(meter(application, "decisions", "policy:all", "outcome:allowed", "backend:jdbc"))
                    .isEqualTo(2);
            assertThat(meter(application, "available", "policy:all")).isEqualTo(3);
            assertThat(meter(application, "backend", "backend:jdbc", "outcome:ok"))
                    .as("two decisions, and two looks of the actuator at least")
                    .isGreaterThanOrEqualTo(4);
            assertThat(meter(application, "backend", "backend:jdbc", "outcome:failed"))
                    .isZero();
            assertThat(application.get("/actuator/ratelimitdashboard").body()).contains("<title>");
            assertThat(application.get("/actuator/ratelimitdashboard/data").body())
                    .containsPattern("\"name\":\"all\".*\"available\":3")
                    .contains("\"name\":\"the database\"");
        }
    }

    /** Returns the first measurement of a meter: its count, or its value. */
    private static double meter(JdbcApplication application, String name, String... tags) {
        String body = application
                .get("/actuator/metrics/ratelimit." + name + "?tag=" + String.join("&tag=", tags))
                .body();
        Matcher value = Pattern.compile("\"value\":([0-9.E]+)").matcher(body);
        assertThat(value.find()).as(body).isTrue();
        return Double.parseDouble(value.group(1));
    }
}
