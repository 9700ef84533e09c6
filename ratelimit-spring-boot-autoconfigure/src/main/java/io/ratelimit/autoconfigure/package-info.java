/**
 * The auto-configuration that joins the slices: the throttlers of all policies, the stores that may fail, the start-up
 * report and the hints for native images. Start at {@link io.ratelimit.autoconfigure.RateLimitAutoConfiguration}. {@code SharedBackend}
 * has the beans around Redis or a database, {@code StartupReport} the lines of the start, and each {@code …Advice} warnings of
 * probable mistakes. {@code RateLimitMeters} has the meters. {@code PolicyLog} and {@code ShadowDemandLog} write the lines while
 * the application runs. This package may import every slice, and no slice imports it.
 */
@NullMarked
package io.ratelimit.autoconfigure;

import org.jspecify.annotations.NullMarked;
