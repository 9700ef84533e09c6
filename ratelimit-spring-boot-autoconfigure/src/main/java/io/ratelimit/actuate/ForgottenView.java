package io.ratelimit.actuate;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * A bucket that was forgotten.
 *
 * @param key whose it was; null for the one bucket of a global policy
 * @param limit with what is in the bucket now; one that is shared with other keys stays as it is
 * @param holds for whom
 */
public record ForgottenView(String policy, @Nullable KeyView key, LimitView limit, String holds)
        implements OperationResponseBody {}
