/** The auto-configuration of buckets in Redis from {@code ratelimit.redis.*}. */
@NullMarked
package io.ratelimit.autoconfigure.redis;

import org.jspecify.annotations.NullMarked;
