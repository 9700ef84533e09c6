package io.ratelimit.actuate;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What the configuration says of a policy beside its limit.
 *
 * @param appliesTo what it limits: requests, calls of annotated methods, or what code asks it for
 * @param phase where the filter asks it
 * @param paths where it applies; everywhere if empty
 * @param excludePaths where it doesn't
 * @param methods of which requests; of all if empty
 * @param overrides for how many keys and networks something else holds
 * @param backend where its buckets are
 * @param onBackendFailure what holds while they can't be had; null where they are in this process
 */
public record PolicyScope(
        String appliesTo,
        @Nullable String phase,
        List<String> paths,
        List<String> excludePaths,
        List<String> methods,
        int overrides,
        String backend,
        @Nullable String onBackendFailure) {}
