package io.ratelimit.redis;

import io.ratelimit.remote.lease.LeaseOracle;
import io.ratelimit.remote.lease.LeasePlace;
import org.junit.jupiter.api.Tag;

/** Random histories of leases from the script. */
@Tag("slow")
class LeaseOracleTests extends LeaseOracle {

    @Override
    protected LeasePlace place() {
        return RedisPlace.ofScripts();
    }
}
