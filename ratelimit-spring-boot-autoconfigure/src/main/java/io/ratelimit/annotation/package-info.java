/**
 * Limits on the calls of methods of any Spring bean.
 *
 * <p>Start at {@link io.ratelimit.annotation.RateLimited}. The {@code RateLimitedAdvisor} charges
 * each call as {@link io.ratelimit.annotation.RateLimitedOperations} has read it from the annotations. A denied call
 * throws a {@link io.ratelimit.annotation.RateLimitExceededException}.
 *
 * <p>In the package, a scanner finds the annotations, a reader reads each of them once, and a validator checks all beans
 * at the start. Nothing here depends on the servlet API.
 */
@NullMarked
package io.ratelimit.annotation;

import org.jspecify.annotations.NullMarked;
