/** Requests in flight under load: {@link io.ratelimit.benchmarks.inflight.Load} on Redis, and each way in which a request ends. */
@NullMarked
package io.ratelimit.benchmarks.inflight;

import org.jspecify.annotations.NullMarked;
