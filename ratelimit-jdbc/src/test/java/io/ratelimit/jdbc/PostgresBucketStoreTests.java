package io.ratelimit.jdbc;

import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;

/** The store in a table of PostgreSQL, on a clock of the test. */
@Tag("slow")
class PostgresBucketStoreTests extends JdbcBucketStoreContract {

    private static final DataSource SOURCE = TestDatabase.postgres();

    PostgresBucketStoreTests() {
        super(SOURCE);
    }
}
