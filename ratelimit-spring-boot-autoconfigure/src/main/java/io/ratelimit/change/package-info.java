/**
 * Changes of limits while the application runs, for one instance or for all. Start at {@link io.ratelimit.change.LimitChanges}, which
 * has the verbs. {@code ChangedLimits} are the changes in force here, and {@code ChangeFollower} reads and writes those for all
 * instances, which a {@link io.ratelimit.ChangeBoard} of the backend holds.
 */
@NullMarked
package io.ratelimit.change;

import org.jspecify.annotations.NullMarked;
