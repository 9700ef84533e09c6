/**
 * What the user wrote, read once: the properties, their readers, and the policies that follow from them. All slices stand on
 * this package, which knows only the core and the keys.
 */
@NullMarked
package io.ratelimit.policy;

import org.jspecify.annotations.NullMarked;
