package io.ratelimit.redis;

import io.ratelimit.remote.lease.LeaseContract;
import org.junit.jupiter.api.Tag;

/** Leases from transactions in Redis. */
@Tag("slow")
class TransactionLeaseTests extends LeaseContract {

    TransactionLeaseTests() {
        super(new TransactionPlace(TestRedis.keys()));
    }
}
