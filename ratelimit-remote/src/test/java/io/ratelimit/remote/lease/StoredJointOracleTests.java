package io.ratelimit.remote.lease;

/** Histories on a store that can only compare and set. */
class StoredJointOracleTests extends JointOracle {

    @Override
    protected LeasePlace place() {
        return new MapPlace();
    }
}
