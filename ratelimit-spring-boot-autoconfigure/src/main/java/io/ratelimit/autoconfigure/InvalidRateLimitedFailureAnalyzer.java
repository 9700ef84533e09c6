package io.ratelimit.autoconfigure;

import io.ratelimit.annotation.InvalidRateLimitedException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Reports a wrong {@code @RateLimited} annotation. */
class InvalidRateLimitedFailureAnalyzer extends AbstractFailureAnalyzer<InvalidRateLimitedException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, InvalidRateLimitedException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.action(), cause);
    }
}
