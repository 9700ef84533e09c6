/**
 * From {@code ratelimit.*} to beans. Properties become core records once, at the start, and never leave this package
 * and those below it.
 */
@NullMarked
package io.ratelimit.autoconfigure;

import org.jspecify.annotations.NullMarked;
