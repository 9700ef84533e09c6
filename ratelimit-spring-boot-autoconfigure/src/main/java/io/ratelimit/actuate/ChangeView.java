package io.ratelimit.actuate;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * What a change made of a limit.
 *
 * @param tier that was changed; null for the policy's own limit
 * @param holds where and for how long
 */
public record ChangeView(String policy, @Nullable String tier, LimitView before, LimitView now, String holds)
        implements OperationResponseBody {}
