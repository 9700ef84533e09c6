package io.ratelimit.jdbc;

import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;

/** The store in a table of H2, on a clock of the test. */
@Tag("slow")
class H2BucketStoreTests extends JdbcBucketStoreContract {

    private static final DataSource SOURCE = TestDatabase.h2();

    H2BucketStoreTests() {
        super(SOURCE);
    }
}
