package io.ratelimit.jdbc;

import io.ratelimit.remote.lease.JointOracle;
import io.ratelimit.remote.lease.LeasePlace;

/** Histories on a table of H2. */
class H2JointOracleTests extends JointOracle {

    private static final JdbcPlace TABLE = JdbcPlace.in(TestDatabase.h2());

    @Override
    protected LeasePlace place() {
        return TABLE.next();
    }
}
