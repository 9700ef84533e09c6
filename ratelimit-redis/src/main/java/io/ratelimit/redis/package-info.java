/**
 * Buckets in Redis, which all instances of an application share.
 *
 * <p>Start at {@link io.ratelimit.redis.RedisStorage}, and at {@code RedisBucketStore}, which has a subclass for scripts and
 * one for transactions. The comment of {@code bucket.lua} explains how a bucket becomes two whole numbers. {@code
 * RedisTickScale} defines their unit, {@code ScriptCalls} makes the calls of the script, and the tests hold the script against
 * a model in Java. {@code RedisLanes} are guaranteed shares, {@code RedisRegisters} slots of calls in flight, and {@code
 * RedisChanges} the changes for all instances. Transactions count by the core (see {@link io.ratelimit.CompareAndSetBucketStore}). {@link
 * io.ratelimit.remote.FailoverBucketStore} calls the store within a deadline, and answers by the {@link
 * io.ratelimit.remote.FailoverBucketStore.FailureRule} of each policy when Redis fails.
 */
@NullMarked
package io.ratelimit.redis;

import org.jspecify.annotations.NullMarked;
