package io.ratelimit.actuate;

import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * A bucket that was forgotten: it is full again.
 *
 * @param holds for whom
 */
public record ForgottenView(String policy, KeyView key, String holds) implements OperationResponseBody {}
