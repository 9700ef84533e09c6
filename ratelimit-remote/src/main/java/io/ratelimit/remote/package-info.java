/**
 * The rules for any remote bucket store that fails: deadline, circuit breaker, fallback and remembered denials. They
 * hold for Redis and for an application's own store alike. Start at {@link io.ratelimit.remote.FailoverBucketStore}.
 * Leases have a package of their own, {@code io.ratelimit.remote.lease}, and so have calls in flight, {@code
 * io.ratelimit.remote.inflight}. What the modules for Redis and databases share is here as well: {@link
 * io.ratelimit.remote.Storage}, {@link io.ratelimit.remote.KeyHash} and {@link io.ratelimit.remote.SignedChangeBoard}.
 */
@NullMarked
package io.ratelimit.remote;

import org.jspecify.annotations.NullMarked;
