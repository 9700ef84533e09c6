/**
 * Limits on HTTP requests, enforced before they reach a controller.
 *
 * <p>Start at {@code RateLimitFilter}. A package-private ledger in an attribute of the request
 * enters a phase, gets the charges from {@link io.ratelimit.web.servlet.RequestPolicies}, asks for one decision, and lets
 * the request proceed or rejects it through {@link io.ratelimit.web.servlet.rejection.Rejections}. The filter that the
 * request entered first completes it: it gives refunded tokens back, and settles costs.
 *
 * <p>The order of the start. The container asks for filters first, before any other singleton exists. A filter that
 * depended on policies would create, at that moment, the endpoints, thus all handler mappings, thus all controllers and
 * what they need, in an order that the application doesn't expect; some would miss their post-processors. Spring MVC's own
 * configurer is as early, and so is the advisor of annotated methods. All of these therefore get only the context, in a
 * {@code ServerLimits.Late}, which looks the policies and the rejections up with the first request.
 *
 * <p>Then come the other singletons. Handler mappings are created, {@link io.ratelimit.web.servlet.endpoint.Endpoints}
 * reads them once, {@code RequestPolicies} reads the configuration against them, and {@code Rejections} follows. These
 * three are never lazy, so a mistake in a policy stops the start and not a request. A management server with a port of its
 * own repeats this in a child context, after the application's: its endpoints and filters are its own, but the policies'
 * buckets and the number of delayed rejections are shared.
 *
 * <p>A {@link io.ratelimit.web.servlet.rejection.RejectionHandler} bean replaces the response to rejected requests.
 */
@NullMarked
package io.ratelimit.web.servlet;

import org.jspecify.annotations.NullMarked;
