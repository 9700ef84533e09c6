/** Expressions in keys, costs and conditions: the check of what they use, exact arithmetic, and numbers in texts. */
@NullMarked
package io.ratelimit.key.expression;

import org.jspecify.annotations.NullMarked;
