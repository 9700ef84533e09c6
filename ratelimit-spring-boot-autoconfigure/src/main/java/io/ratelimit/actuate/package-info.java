/**
 * What an operator sees of limits and can do about them: start at {@link io.ratelimit.actuate.DeniedKeys}, which knows
 * whom policies deny most.
 */
@NullMarked
package io.ratelimit.actuate;

import org.jspecify.annotations.NullMarked;
