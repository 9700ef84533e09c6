package io.ratelimit.jdbc;

import io.ratelimit.remote.lease.LeaseContract;

/** Leases from a table of H2. */
class H2LeaseTests extends LeaseContract {

    private static final JdbcPlace TABLE = JdbcPlace.in(TestDatabase.h2());

    H2LeaseTests() {
        super(TABLE.next());
    }
}
