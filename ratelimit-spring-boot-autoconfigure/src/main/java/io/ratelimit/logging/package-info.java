/**
 * The lines of the log while the application runs: denials, failures and changes ({@link io.ratelimit.logging.PolicyLog}),
 * and once a day the demand of policies in shadow mode.
 */
@NullMarked
package io.ratelimit.logging;

import org.jspecify.annotations.NullMarked;
