package io.ratelimit.remote.lease;

/** Leases from a store that can only compare and set. */
class StoredLeaseTests extends LeaseContract {

    StoredLeaseTests() {
        super(new MapPlace());
    }
}
