/**
 * The endpoint that a request will reach, found without Spring MVC's own look-up of the handler.
 *
 * <p>{@link io.ratelimit.web.servlet.endpoint.Endpoints} is the door; its index of patterns explains the method.
 */
@NullMarked
package io.ratelimit.web.servlet.endpoint;

import org.jspecify.annotations.NullMarked;
