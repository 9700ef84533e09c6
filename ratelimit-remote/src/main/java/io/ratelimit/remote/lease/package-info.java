/**
 * Tokens that this process takes ahead from a remote bucket, so that later calls need no call of the store. Start at {@link
 * io.ratelimit.remote.lease.Leases}; a store that can grant leases implements {@link
 * io.ratelimit.LeasingBucketStore}.
 */
@NullMarked
package io.ratelimit.remote.lease;

import org.jspecify.annotations.NullMarked;
