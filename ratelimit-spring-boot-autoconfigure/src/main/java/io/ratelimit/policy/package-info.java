/**
 * The policies as the user wrote them: the properties, and the readers that read them once, at the start. Start at {@link
 * io.ratelimit.policy.RateLimitProperties}, and at {@link io.ratelimit.policy.ConfiguredPolicies}, what follows from them. {@code
 * RateLimitFailureAnalyzers} explain a mistake, and {@code BadValue} contains what to type. Each slice may import this package.
 * It imports the core, the keys and the rule for failures of a remote store.
 */
@NullMarked
package io.ratelimit.policy;

import org.jspecify.annotations.NullMarked;
