package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import java.sql.SQLException;
import org.junit.jupiter.api.Test;

/** The messages of failures, which the log shows. */
class JdbcFailuresTests {

    @Test
    void aMessageOfTheDatabaseIsOneLineWithoutControlCharacters() {
        assertThat(JdbcFailures.of(new SQLException("ERROR: no\n  Detail: row\r\n\u001b[2J\u2028end", "42501")))
                .hasMessage("the database failed: ERROR: no Detail: row [2J end");
    }
}
