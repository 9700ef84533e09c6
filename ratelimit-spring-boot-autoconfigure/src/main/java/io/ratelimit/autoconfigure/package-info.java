/**
 * Auto-configuration of the throttlers. {@code PolicyReader} reads {@code RateLimitProperties} once, at the start, into
 * {@code ConfiguredPolicies}. Properties never leave this package and the packages below it.
 */
@NullMarked
package io.ratelimit.autoconfigure;

import org.jspecify.annotations.NullMarked;
