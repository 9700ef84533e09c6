/**
 * Limits on HTTP requests, enforced before they reach a controller.
 *
 * <p>Start at {@link io.ratelimit.web.servlet.RateLimitFilter}. It gets the charges of a request from
 * {@link io.ratelimit.web.servlet.RequestPolicies}, asks for one decision, and lets the request proceed or rejects it
 * through {@link io.ratelimit.web.servlet.rejection.Rejections}. A package-private ledger in an attribute of the request
 * records the charges over both phases.
 *
 * <p>A {@link io.ratelimit.web.servlet.rejection.RejectionHandler} bean replaces the response to rejected requests.
 */
@NullMarked
package io.ratelimit.web.servlet;

import org.jspecify.annotations.NullMarked;
