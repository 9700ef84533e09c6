/** What the log says of decisions: {@link io.ratelimit.logging.DenialLog}. */
@NullMarked
package io.ratelimit.logging;

import org.jspecify.annotations.NullMarked;
