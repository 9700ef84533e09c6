/**
 * Buckets in Redis, which all instances of an application share.
 *
 * <p>Start at {@link io.ratelimit.redis.RedisBucketStore}. The idea of it, how a bucket becomes two whole numbers and how
 * they are counted with, is told in {@code bucket.lua}; {@link io.ratelimit.redis.RedisTicks} says in which unit, and
 * {@link io.ratelimit.redis.RedisBucket} is the same arithmetic in Java. {@link io.ratelimit.redis.FailoverBucketStore} asks it,
 * within a deadline and as long as that makes sense, and otherwise goes by each policy's
 * {@link io.ratelimit.redis.FailureRule}.
 */
@NullMarked
package io.ratelimit.redis;

import org.jspecify.annotations.NullMarked;
