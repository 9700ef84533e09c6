package io.ratelimit.jdbc;

import io.ratelimit.remote.lease.JointOracle;
import io.ratelimit.remote.lease.LeaseContract;
import io.ratelimit.remote.lease.LeaseOracle;
import io.ratelimit.remote.lease.LeasePlace;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** The store, leases and random histories on a MariaDB, if there is one. */
@Tag("slow")
@EnabledIfEnvironmentVariable(named = TestDatabase.MARIADB, matches = ".+")
class MariaDbTests {

    /** The table of all tests of leases. */
    private static final class Table {
        private static final JdbcPlace SHARED = JdbcPlace.in(TestDatabase.mariaDb());
    }

    @Nested
    class Store extends JdbcBucketStoreContract {

        Store() {
            super(TestDatabase.mariaDb());
        }
    }

    @Nested
    class Leased extends LeaseContract {

        Leased() {
            super(Table.SHARED.next());
        }
    }

    @Nested
    class Histories extends LeaseOracle {

        @Override
        protected LeasePlace place() {
            return Table.SHARED.next();
        }
    }

    @Nested
    class JointHistories extends JointOracle {

        @Override
        protected LeasePlace place() {
            return Table.SHARED.next();
        }
    }
}
