/**
 * What a limit costs, beside what one would use instead.
 *
 * <p>{@code benchmarks/run} measures all and writes {@code benchmarks/RESULTS.md}; {@code Results} says how the numbers
 * become its tables. Each {@code …Benchmark} has its floors and its peers in the same run, so that ratios hold on a
 * machine where nanoseconds don't.
 */
@NullMarked
package io.ratelimit.benchmarks;

import org.jspecify.annotations.NullMarked;
