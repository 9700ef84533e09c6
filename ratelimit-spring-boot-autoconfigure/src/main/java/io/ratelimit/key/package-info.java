/**
 * Keys: the facts of a request, and the bucket that follows from them.
 *
 * <p>Start at {@link io.ratelimit.key.RequestKey}. It composes the texts that the {@link io.ratelimit.key.KeyPart}s
 * read from {@link io.ratelimit.key.RequestFacts}. {@link io.ratelimit.key.RequestTier}, {@link
 * io.ratelimit.key.RequestCost} and {@link io.ratelimit.key.RequestCondition} depend on the same facts. An application
 * adds a part of a key by a {@link io.ratelimit.key.KeyResolver}, and a limit for each request by a {@link
 * io.ratelimit.key.LimitResolver}. Nothing in this package depends on the servlet API.
 */
@NullMarked
package io.ratelimit.key;

import org.jspecify.annotations.NullMarked;
