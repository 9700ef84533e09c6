package io.ratelimit.actuate;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * All policies, by name.
 *
 * @param backend that some of them have their buckets in; null where all are in this process
 */
public record PoliciesView(
        Map<String, PolicyView> policies, @Nullable BackendView backend) implements OperationResponseBody {}
