/**
 * What the log says of decisions, failures and changes: {@link io.ratelimit.logging.DenialLog},
 * {@link io.ratelimit.logging.FailureLog}, {@link io.ratelimit.logging.ReconfigurationLog}.
 */
@NullMarked
package io.ratelimit.logging;

import org.jspecify.annotations.NullMarked;
