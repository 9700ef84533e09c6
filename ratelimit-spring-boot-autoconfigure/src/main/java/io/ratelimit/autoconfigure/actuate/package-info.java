/** Auto-configuration of the actuator's endpoints for limits. */
@NullMarked
package io.ratelimit.autoconfigure.actuate;

import org.jspecify.annotations.NullMarked;
