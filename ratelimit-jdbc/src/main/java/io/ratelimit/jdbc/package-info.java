/**
 * Buckets in a table of a database, which all instances of an application share.
 *
 * <p>Start at {@link io.ratelimit.jdbc.JdbcStorage}, and at {@code JdbcBucketStore}, which counts by the core (see {@link
 * io.ratelimit.CompareAndSetBucketStore}). {@code BucketTable} has the statements, {@code Dialect} what differs between
 * databases, and {@code ConnectionPool} the connections. {@link io.ratelimit.remote.FailoverBucketStore} calls the store
 * within a deadline, and answers by the rule of each policy when the database fails.
 */
@NullMarked
package io.ratelimit.jdbc;

import org.jspecify.annotations.NullMarked;
