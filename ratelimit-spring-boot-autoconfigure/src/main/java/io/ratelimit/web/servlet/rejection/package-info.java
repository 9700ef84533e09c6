/**
 * The responses to rejected requests.
 *
 * <p>{@link io.ratelimit.web.servlet.rejection.Rejections} is the door for the filter: CORS, delays, and calls of annotated
 * methods that were denied within a request. It calls a {@link io.ratelimit.web.servlet.rejection.RejectionHandler}, the
 * only writer of a rejection; an application can replace the built-in
 * {@link io.ratelimit.web.servlet.rejection.ProblemRejectionHandler} by a bean of its own.
 */
@NullMarked
package io.ratelimit.web.servlet.rejection;

import org.jspecify.annotations.NullMarked;
