/** Changes of limits while the application runs, for one instance or for all. */
@NullMarked
package io.ratelimit.change;

import org.jspecify.annotations.NullMarked;
