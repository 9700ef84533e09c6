package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** The log line of a table whose expired rows can't be deleted. */
@ExtendWith(OutputCaptureExtension.class)
class JanitorTests {

    private static final Duration TIMEOUT = Duration.ofMinutes(2);

    private final BucketTable table = new BucketTable(TestDatabase.newTable());
    private final String line = "Expired rows stay in the table '" + table.name() + "', which grows until";
    private volatile @Nullable SQLException failure;

    private final PGSimpleDataSource source = new PGSimpleDataSource() {
        @Override
        public Connection getConnection() throws SQLException {
            SQLException failed = failure;
            if (failed != null) {
                throw failed;
            }
            return TestDatabase.postgres().getConnection();
        }
    };

    private void sweep(Janitor janitor, int times) {
        for (int i = 0; i < times; i++) {
            janitor.sweep();
        }
    }

    @Test
    void aUserThatMayNotDeleteHasOneWarning(CapturedOutput output) {
        TestDatabase.connections(TestDatabase.postgres(), table, TIMEOUT).stop();
        String role = table.name();
        TestDatabase.execute(
                TestDatabase.postgres(),
                "CREATE ROLE %1$s LOGIN; GRANT SELECT, INSERT, UPDATE ON %1$s TO %1$s".formatted(role));
        PGSimpleDataSource limited = new PGSimpleDataSource();
        limited.setUrl(TestDatabase.url(TestDatabase.postgres()).replaceAll("user=\\w+", "user=" + role));
        sweep(new Janitor(limited, table, Janitor.PAUSE), 5);
        assertThat(output).containsOnlyOnce(line).contains("(the database failed: ERROR: permission denied for table");
    }

    @Test
    void onlyAFailureThatLastsHasAWarningAndASuccessPermitsTheNext(CapturedOutput output) {
        TestDatabase.connections(TestDatabase.postgres(), table, TIMEOUT).stop();
        Janitor janitor = new Janitor(source, table, Janitor.PAUSE);
        failure = new SQLException("the first outage", "08001");
        sweep(janitor, 2);
        assertThat(output).doesNotContain(line);
        sweep(janitor, 3);
        assertThat(output).containsOnlyOnce(line).contains("the first outage");
        failure = null;
        sweep(janitor, 1);
        failure = new SQLException("the second outage", "08001");
        sweep(janitor, 2);
        assertThat(output).doesNotContain("the second outage");
        sweep(janitor, 1);
        assertThat(output).contains(line + " they can be deleted (the database failed: the second outage)");
    }
}
