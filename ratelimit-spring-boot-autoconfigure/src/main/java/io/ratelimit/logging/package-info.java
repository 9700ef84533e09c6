/** What the log says of decisions and of failures: {@link io.ratelimit.logging.DenialLog}, {@link io.ratelimit.logging.FailureLog}. */
@NullMarked
package io.ratelimit.logging;

import org.jspecify.annotations.NullMarked;
