package io.ratelimit.annotation;

import io.ratelimit.Throttlers;
import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.FailureListener;
import java.util.Map;

/**
 * What annotations are read with.
 *
 * @param policies those of the configuration that annotations may name
 */
record RateLimitedReading(
        Map<String, AnnotatedPolicy> policies,
        Throttlers throttlers,
        OwnLimits ownLimits,
        CallExpressions expressions,
        BeanTypes beans,
        CurrentRequest current,
        FailureListener failures) {

    /** With its placeholders replaced. */
    String resolve(String text) {
        String resolved = beans.factory().resolveEmbeddedValue(text);
        return resolved == null ? "" : resolved.strip();
    }
}
