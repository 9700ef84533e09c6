package io.ratelimit.actuate;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/**
 * A policy at a glance: who is limited by what.
 *
 * @param policy its name
 * @param mode enforce, shadow or off
 * @param key the parts of its buckets' keys; empty for a global one
 * @param limit its own; with what is in the bucket where it is global
 * @param tiers likewise, by name
 * @param buckets how many this instance holds
 * @param waiting how many calls wait in line
 * @param deniedMost the keys that it denied most in the last minutes
 */
public record PolicyView(
        String policy,
        String mode,
        List<String> key,
        LimitView limit,
        Map<String, LimitView> tiers,
        PolicyScope scope,
        long buckets,
        int waiting,
        List<Denied> deniedMost)
        implements OperationResponseBody {

    /**
     * A key that was denied.
     *
     * @param denied at least so often
     * @param shadow true where none was refused; null where they were
     */
    public record Denied(KeyView key, long denied, @Nullable Boolean shadow) {}
}
