/**
 * The auto-configuration that joins the slices: the throttlers of all policies, the stores that may fail, the start-up
 * report and the hints for native images. This package may import every slice, and no slice imports it.
 */
@NullMarked
package io.ratelimit.autoconfigure;

import org.jspecify.annotations.NullMarked;
