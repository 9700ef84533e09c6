/**
 * Whose bucket a request asks: facts of the request, and the key that follows from them.
 *
 * <p>Start at {@link io.ratelimit.key.RequestKey}: it composes what its {@link io.ratelimit.key.KeyPart}s read from
 * {@link io.ratelimit.key.RequestFacts}. {@link io.ratelimit.key.RequestCost} and
 * {@link io.ratelimit.key.RequestCondition} are expressions over the same facts. Nothing here depends on the servlet API.
 */
@NullMarked
package io.ratelimit.key;

import org.jspecify.annotations.NullMarked;
