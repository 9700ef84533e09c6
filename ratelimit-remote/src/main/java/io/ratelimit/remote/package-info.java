/**
 * The rules for any remote bucket store that fails: deadline, circuit breaker, fallback and remembered denials. They
 * hold for Redis and for an application's own store alike. Start at {@link io.ratelimit.remote.FailoverBucketStore}.
 * Stores that implement {@link io.ratelimit.remote.LeasingBucketStore} lease tokens to this process.
 */
@NullMarked
package io.ratelimit.remote;

import org.jspecify.annotations.NullMarked;
