package io.ratelimit.actuate;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What the dashboard shows, as its page reads it.
 *
 * @param instance another one after each start of the application
 * @param second the last second that is told, counted from the start
 * @param from the second before the first that is told
 * @param seconds how many the page keeps
 * @param change how limits are changed
 */
record DashboardData(
        String instance,
        long second,
        long from,
        int seconds,
        Change change,
        List<BackendView> backends,
        List<PolicyData> policies) {

    /**
     * How limits are changed.
     *
     * @param path of the endpoint that does it, below the actuator's base path; null if it is not exposed
     * @param writable whether that endpoint may
     * @param authenticated whether the one who asks had to log in
     */
    record Change(@Nullable String path, boolean writable, boolean authenticated) {}

    /**
     * A policy and its decisions by the second, -1 where they are not known.
     *
     * @param tiers specs by the names of the tiers
     * @param available the tokens of the one bucket; null if there are more, or it wasn't seen yet
     * @param lastSeen whether that is what the last call saw, and not what is there
     * @param queueLimit the calls that may wait in line; 0 if none may
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
            List<PolicyView.Denied> deniedKeys) {}
}
