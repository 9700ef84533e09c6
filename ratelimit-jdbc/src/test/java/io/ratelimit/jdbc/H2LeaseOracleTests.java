package io.ratelimit.jdbc;

import io.ratelimit.remote.lease.LeaseOracle;
import io.ratelimit.remote.lease.LeasePlace;

/** Random histories of leases from a table of H2. */
class H2LeaseOracleTests extends LeaseOracle {

    private static final JdbcPlace TABLE = JdbcPlace.in(TestDatabase.h2());

    @Override
    protected LeasePlace place() {
        return TABLE.next();
    }
}
