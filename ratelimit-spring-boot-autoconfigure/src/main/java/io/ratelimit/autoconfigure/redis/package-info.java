/** From {@code ratelimit.redis.*} to buckets in Redis. */
@NullMarked
package io.ratelimit.autoconfigure.redis;

import org.jspecify.annotations.NullMarked;
