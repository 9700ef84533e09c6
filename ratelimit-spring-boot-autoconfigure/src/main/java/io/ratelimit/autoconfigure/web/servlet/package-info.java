/** From {@code ratelimit.*} to the filters of a servlet application. */
@NullMarked
package io.ratelimit.autoconfigure.web.servlet;

import org.jspecify.annotations.NullMarked;
