package io.ratelimit.remote.lease;

/** Random histories of leases from a store that can only compare and set. */
class StoredLeaseOracleTests extends LeaseOracle {

    @Override
    protected LeasePlace place() {
        return new MapPlace();
    }
}
