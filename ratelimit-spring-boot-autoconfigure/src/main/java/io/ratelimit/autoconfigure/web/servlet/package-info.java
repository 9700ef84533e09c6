/** Auto-configuration of the filters, and the start-up report of a servlet application. */
@NullMarked
package io.ratelimit.autoconfigure.web.servlet;

import org.jspecify.annotations.NullMarked;
