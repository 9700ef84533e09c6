/**
 * The rules for any remote bucket store that fails: deadline, circuit breaker, fallback and remembered denials. They
 * hold for Redis and for an application's own store alike. Start at {@link io.ratelimit.remote.FailoverBucketStore}.
 * Leases have a package of their own, {@code io.ratelimit.remote.lease}.
 */
@NullMarked
package io.ratelimit.remote;

import org.jspecify.annotations.NullMarked;
