package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.remote.Deadline.CongestedException;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The messages of failures, which the log shows, and their meanings. */
class JdbcFailuresTests {

    /** The state is that of any error, so that only the code shows that no other attempt will succeed. */
    @Test
    void aSettingThatTheServerLacksIsAMistake() {
        SQLException unknown = new SQLException("Unknown system variable 'max_execution_time'", "HY000", 1193);
        assertThat(JdbcFailures.of(unknown).isMisconfiguration()).isTrue();
    }

    @Test
    void aMessageOfTheDatabaseIsOneLineWithoutControlCharacters() {
        assertThat(JdbcFailures.of(new SQLException("ERROR: no\n  Detail: row\r\n\u001b[2J\u2028end", "42501")))
                .hasMessage("the database failed: ERROR: no Detail: row [2J end");
    }

    @Test
    void aWantOfMemoryOrThreadsIsNoFailureOfTheDatabase() {
        OutOfMemoryError noThread = new OutOfMemoryError("unable to create native thread");
        assertThat(JdbcFailures.of(new CompletionException(noThread)))
                .isInstanceOf(CongestedException.class)
                .hasMessageContaining("unable to create native thread");
    }

    /** The consequence of an error. A connection is kept only after errors that are late or refused. */
    enum Meaning {
        CONFLICT,
        LATE,
        READ_ONLY,
        MISSING_TABLE,
        REFUSED,
        OUTAGE;

        static Meaning of(SQLException error) {
            if (JdbcFailures.isConflict(error)) {
                return CONFLICT;
            }
            if (JdbcFailures.isLate(error)) {
                return LATE;
            }
            boolean misconfigured = JdbcFailures.of(error).isMisconfiguration();
            if (JdbcFailures.isRefused(error)) {
                assertThat(misconfigured).isTrue();
                return JdbcFailures.isMissingTable(error) ? MISSING_TABLE : REFUSED;
            }
            return misconfigured ? READ_ONLY : OUTAGE;
        }
    }

    /** By the manuals of the databases. A state alone may stand for several errors. */
    @ParameterizedTest
    @CsvSource({
        "PostgreSQL, a deadlock, 40P01, 0, CONFLICT",
        "PostgreSQL, a serialization failure, 40001, 0, CONFLICT",
        "PostgreSQL, an unknown completion, 40003, 0, OUTAGE",
        "PostgreSQL, a key that exists, 23505, 0, CONFLICT",
        "PostgreSQL, a null, 23502, 0, REFUSED",
        "PostgreSQL, statement_timeout, 57014, 0, LATE",
        "PostgreSQL, lock_timeout, 55P03, 0, LATE",
        "PostgreSQL, a replica, 25006, 0, READ_ONLY",
        "PostgreSQL, no table, 42P01, 0, MISSING_TABLE",
        "PostgreSQL, no right, 42501, 0, REFUSED",
        "PostgreSQL, a wrong password, 28P01, 0, REFUSED",
        "PostgreSQL, no database, 3D000, 0, REFUSED",
        "PostgreSQL, no schema, 3F000, 0, REFUSED",
        "PostgreSQL, a value that is too long, 22001, 0, REFUSED",
        "PostgreSQL, too many connections, 53300, 0, OUTAGE",
        "PostgreSQL, a shutdown, 57P01, 0, OUTAGE",
        "PostgreSQL, a start, 57P03, 0, OUTAGE",
        "PostgreSQL, a lost connection, 08006, 0, OUTAGE",
        "MariaDB, a deadlock, 40001, 1213, CONFLICT",
        "MariaDB, a key that exists, 23000, 1062, CONFLICT",
        "MariaDB, a null, 23000, 1048, REFUSED",
        "MariaDB, max_statement_time, 70100, 1969, LATE",
        "MySQL, --read-only, HY000, 1290, READ_ONLY",
        "MySQL, read-only mode, HY000, 1836, READ_ONLY",
        "MySQL, no table, 42S02, 1146, MISSING_TABLE",
        "MySQL, no right, 42000, 1142, REFUSED",
        "MySQL, a wrong password, 28000, 1045, REFUSED",
        "MySQL, a lost connection, 08S01, 0, OUTAGE",
        "Oracle, a key that exists, 23000, 1, CONFLICT",
        "Oracle, no table, 42000, 942, MISSING_TABLE",
        "Oracle, a standby, 72000, 16000, READ_ONLY",
        "Oracle, a shutdown, 72000, 1089, OUTAGE",
        "SQL Server, a deadlock, 40001, 1205, CONFLICT",
        "SQL Server, a primary key that exists, 23000, 2627, CONFLICT",
        "SQL Server, an index that has the key, 23000, 2601, CONFLICT",
        "SQL Server, a replica, S0001, 3906, READ_ONLY",
        "SQL Server, no table, S0002, 208, MISSING_TABLE",
        "SQL Server, a query that is too long, HYT00, 0, LATE",
        "H2, a deadlock, 40001, 40001, CONFLICT",
        "H2, a key that exists, 23505, 23505, CONFLICT",
        "H2, LOCK_TIMEOUT, HYT00, 50200, LATE",
        "H2, a read-only database, 90097, 90097, READ_ONLY",
        "H2, no table, 42S02, 42102, MISSING_TABLE",
        "H2, no table but others, 42S03, 42103, MISSING_TABLE",
        "H2, no table at all, 42S04, 42104, MISSING_TABLE",
        "H2, no right, 90096, 90096, REFUSED",
        "a driver, no state, , 0, OUTAGE",
    })
    void anErrorMeans(String database, String error, String state, int code, Meaning meaning) {
        assertThat(Meaning.of(new SQLException(error, state, code)))
                .as(database)
                .isEqualTo(meaning);
    }

    @Test
    void aDriverThatStopsWaitingIsLate() {
        assertThat(Meaning.of(new SQLTimeoutException("too long"))).isEqualTo(Meaning.LATE);
        SocketTimeoutException silent = new SocketTimeoutException("Read timed out");
        assertThat(Meaning.of(new SQLException("I/O error", "08006", new IOException(silent))))
                .isEqualTo(Meaning.LATE);
    }
}
