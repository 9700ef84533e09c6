package io.ratelimit.jdbc;

import io.ratelimit.remote.lease.LeaseOracle;
import io.ratelimit.remote.lease.LeasePlace;
import org.junit.jupiter.api.Tag;

/** Random histories of leases from a table of PostgreSQL. */
@Tag("slow")
class PostgresLeaseOracleTests extends LeaseOracle {

    private static final JdbcPlace TABLE = JdbcPlace.in(TestDatabase.postgres());

    @Override
    protected LeasePlace place() {
        return TABLE.next();
    }
}
