@NullMarked
package io.ratelimit.aot;

import org.jspecify.annotations.NullMarked;
