package io.ratelimit.redis;

import io.ratelimit.remote.lease.JointOracle;
import io.ratelimit.remote.lease.LeasePlace;
import org.junit.jupiter.api.Tag;

/**
 * Histories on the script in a real Redis.
 *
 * <p>The oracles complete each other. These planted defects were noticed at the default numbers of steps:
 *
 * <table>
 *   <caption>Defects, and the oracles that notice them</caption>
 *   <tr><td>a call gets one tick too many back, in memory</td>
 *       <td>{@code TokenBucketOracleTests}, {@code LocalBucketStoreOracleTests}, this one</td></tr>
 *   <tr><td>the same where time has paid a part of the price</td><td>{@code TokenBucketOracleTests}</td></tr>
 *   <tr><td>a changed limit brings one batch more, in memory</td>
 *       <td>{@code TokenBucketOracleTests}, {@code LocalBucketStoreOracleTests}</td></tr>
 *   <tr><td>a changed limit doesn't reduce the next batch, on Redis</td>
 *       <td>{@link RedisOracleTests}, {@link RedisCalendarOracleTests}, this one</td></tr>
 *   <tr><td>a batch that ends a debt is there before it, on Redis</td>
 *       <td>{@link RedisOracleTests}, {@link RedisCalendarOracleTests}</td></tr>
 *   <tr><td>tokens taken before a conversion come back, on Redis</td>
 *       <td>{@link RedisOracleTests}, {@link RedisCalendarOracleTests}</td></tr>
 *   <tr><td>a lease holds no tokens of its bucket</td><td>{@link LeaseOracleTests}, this one</td></tr>
 *   <tr><td>the tokens of a lease return before its end</td><td>{@link LeaseOracleTests}</td></tr>
 *   <tr><td>tokens from before a reset come back, on Redis</td>
 *       <td>{@link RedisOracleTests}, {@link RedisCalendarOracleTests}, {@link LeaseOracleTests}, this one</td></tr>
 *   <tr><td>the same in memory</td><td>{@code LocalBucketStoreOracleTests}</td></tr>
 * </table>
 */
@Tag("slow")
class JointOracleTests extends JointOracle {

    @Override
    protected LeasePlace place() {
        return RedisPlace.ofScripts();
    }
}
