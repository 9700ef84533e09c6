/**
 * The rules for any remote bucket store that fails: deadline, circuit breaker, fallback and remembered denials. They
 * hold for Redis and for an application's own store alike. Start at {@link io.ratelimit.failover.FailoverBucketStore}.
 * Stores that implement {@link io.ratelimit.failover.LeasingBucketStore} lease tokens to this process.
 */
@NullMarked
package io.ratelimit.failover;

import org.jspecify.annotations.NullMarked;
