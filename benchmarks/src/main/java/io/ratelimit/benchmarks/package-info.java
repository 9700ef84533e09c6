/**
 * The cost of a limit, beside the alternatives.
 *
 * <p>{@code benchmarks/run} runs all benchmarks and writes {@code benchmarks/RESULTS.md}; {@code Results} makes its tables. Each
 * {@code …Benchmark} has its floors and its peers in the same run, since ratios are comparable between machines and
 * nanoseconds are not.
 */
@NullMarked
package io.ratelimit.benchmarks;

import org.jspecify.annotations.NullMarked;
