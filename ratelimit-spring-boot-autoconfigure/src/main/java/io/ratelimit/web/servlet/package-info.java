/**
 * Limits on HTTP requests, enforced before they reach a controller.
 *
 * <p>Start at {@link io.ratelimit.web.servlet.RateLimitFilter}: it asks
 * {@link io.ratelimit.web.servlet.RequestPolicies} what a request is charged, and lets the request through or has it
 * rejected. A {@link io.ratelimit.web.servlet.RejectionHandler} bean replaces the answer.
 */
@NullMarked
package io.ratelimit.web.servlet;

import org.jspecify.annotations.NullMarked;
