/**
 * Log lines for denials ({@link io.ratelimit.logging.DenialLog}), failures ({@link io.ratelimit.logging.FailureLog}) and
 * changes at runtime ({@link io.ratelimit.logging.ReconfigurationLog}).
 */
@NullMarked
package io.ratelimit.logging;

import org.jspecify.annotations.NullMarked;
