/**
 * Limits on calls of methods, of any Spring bean.
 *
 * <p>Start at {@link io.ratelimit.annotation.RateLimited}. The {@link io.ratelimit.annotation.RateLimitedAdvisor} holds
 * calls to what {@link io.ratelimit.annotation.RateLimitedOperations} has read of it once; a refused call throws a
 * {@link io.ratelimit.annotation.RateLimitExceededException}. Nothing here depends on the servlet API.
 */
@NullMarked
package io.ratelimit.annotation;

import org.jspecify.annotations.NullMarked;
