/**
 * The policies as the user wrote them: the properties, and the readers that read them once, at the start. Each slice may
 * import this package. It imports the core, the keys and the rule for failures of a remote store.
 */
@NullMarked
package io.ratelimit.policy;

import org.jspecify.annotations.NullMarked;
