package io.ratelimit.jdbc;

import io.ratelimit.remote.lease.LeaseContract;
import org.junit.jupiter.api.Tag;

/** Leases from a table of PostgreSQL. */
@Tag("slow")
class PostgresLeaseTests extends LeaseContract {

    private static final JdbcPlace TABLE = JdbcPlace.in(TestDatabase.postgres());

    PostgresLeaseTests() {
        super(TABLE.next());
    }
}
