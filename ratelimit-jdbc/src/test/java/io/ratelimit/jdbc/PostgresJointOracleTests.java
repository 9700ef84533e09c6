package io.ratelimit.jdbc;

import io.ratelimit.remote.lease.JointOracle;
import io.ratelimit.remote.lease.LeasePlace;
import org.junit.jupiter.api.Tag;

/** Histories on a table of PostgreSQL. */
@Tag("slow")
class PostgresJointOracleTests extends JointOracle {

    private static final JdbcPlace TABLE = JdbcPlace.in(TestDatabase.postgres());

    @Override
    protected LeasePlace place() {
        return TABLE.next();
    }
}
