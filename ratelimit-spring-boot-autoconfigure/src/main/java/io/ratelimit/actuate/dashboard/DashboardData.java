package io.ratelimit.actuate.dashboard;

import io.ratelimit.actuate.RateLimitsEndpoint.BackendDescriptor;
import io.ratelimit.actuate.RateLimitsEndpoint.DeniedKeyDescriptor;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The data that the dashboard's page reads.
 *
 * @param instance a random identifier that changes with each start of the application
 * @param second the last second of the counts, numbered from the start
 * @param from the second before the first second of the counts
 * @param seconds the number of seconds that the page keeps
 * @param change the information for the page's curl line
 */
record DashboardData(
        String instance,
        long second,
        long from,
        int seconds,
        Change change,
        List<BackendDescriptor> backends,
        List<PolicyData> policies) {

    /**
     * The information for the curl line that changes a limit.
     *
     * @param path the path of the endpoint that changes limits, below the actuator's base path; null if it isn't exposed
     * @param writable whether that endpoint accepts changes
     * @param authenticated whether the current user is authenticated
     */
    record Change(@Nullable String path, boolean writable, boolean authenticated) {}

    /**
     * A policy and its decisions per second; a count of -1 is unknown.
     *
     * @param tiers the specs of the tiers by name
     * @param available the tokens in the bucket of a global policy; null if they are unknown, and for other policies
     * @param lastSeen whether {@code available} is the result of the last decision, not the present state
     * @param waiting the number of queued calls
     * @param queueLimit the maximum number of queued calls; 0 if calls may not wait
     */
    record PolicyData(
            String name,
            String mode,
            List<String> key,
            String rate,
            long capacity,
            Map<String, String> tiers,
            @Nullable Long available,
            boolean lastSeen,
            int waiting,
            int queueLimit,
            int[] allowed,
            int[] denied,
            int[] shadowDenied,
            int[] failed,
            List<DeniedKeyDescriptor> deniedKeys) {}
}
