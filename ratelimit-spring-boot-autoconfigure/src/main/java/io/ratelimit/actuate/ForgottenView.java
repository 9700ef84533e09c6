package io.ratelimit.actuate;

import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * A bucket that was forgotten.
 *
 * @param limit with what is in the bucket now; one that is shared with other keys stays as it is
 * @param holds for whom
 */
public record ForgottenView(String policy, KeyView key, LimitView limit, String holds)
        implements OperationResponseBody {}
