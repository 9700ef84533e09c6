/**
 * Token-bucket throttling, free of any framework.
 *
 * <p>Start at {@link io.ratelimit.Throttler}: it answers one question, <em>may this call go ahead?</em>, with a
 * {@link io.ratelimit.Decision}. A {@link io.ratelimit.BucketSpec} says how fast, a {@link io.ratelimit.TimeSource}
 * says when, a {@link io.ratelimit.BucketStore} says where the buckets are. {@link io.ratelimit.TokenBucket} can be
 * used on its own. Everything that is not public is free to change.
 */
@NullMarked
package io.ratelimit;

import org.jspecify.annotations.NullMarked;
