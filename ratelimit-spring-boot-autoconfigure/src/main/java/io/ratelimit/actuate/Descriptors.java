package io.ratelimit.actuate;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Keys;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.DeniedKeys.DeniedKey;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;

/** The descriptions of policies and buckets in the responses of the endpoint and of the dashboard. */
final class Descriptors {

    private Descriptors() {}

    static final String ALL = "all";
    static final String INSTANCE = "instance";

    static String instances(boolean forAll) {
        return forAll ? ALL : INSTANCE;
    }

    /** Returns a constant as application.yml spells it, such as {@code before-authentication}. */
    static String text(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** @param backend null if all buckets are in memory */
    record PoliciesDescriptor(
            Map<String, PolicyDescriptor> policies,
            @Nullable BackendDescriptor backend) implements OperationResponseBody {}

    /**
     * @param mode enforce, shadow or off
     * @param key the names of the key parts; empty for a global policy
     * @param limit the policy's own limit; for a global policy with the state of its bucket
     * @param shares the guaranteed shares in words; null if there are none
     * @param outage the decisions while the backend is unavailable; null while it isn't, or for buckets in memory
     * @param lease null if the instance takes no tokens ahead
     * @param buckets the number of buckets in this instance
     * @param inFlight the number of calls that run, by keys that limit them; null if no limit does
     */
    record PolicyDescriptor(
            String policy,
            String mode,
            List<String> key,
            LimitDescriptor limit,
            @Nullable String shares,
            Map<String, LimitDescriptor> tiers,
            ScopeDescriptor scope,
            @Nullable OutageDescriptor outage,
            @Nullable String lease,
            long buckets,
            int waiting,
            @Nullable Integer inFlight,
            List<DeniedKeyDescriptor> deniedMost)
            implements OperationResponseBody {}

    /**
     * The configuration of a policy apart from its limit.
     *
     * @param appliesTo requests, annotated or code
     * @param phase the phase of the filter; null if the filter doesn't use the policy
     * @param paths the path patterns; empty for all paths
     * @param methods the HTTP methods; empty for all
     * @param overrides the number of keys and networks with an override
     * @param onBackendFailure the rule for a failed backend; null if the buckets are in memory
     */
    record ScopeDescriptor(
            String appliesTo,
            @Nullable String phase,
            List<String> paths,
            List<String> excludePaths,
            List<String> methods,
            int overrides,
            @Nullable String limitBy,
            String backend,
            @Nullable String onBackendFailure) {}

    /**
     * @param rule local, allow or deny, as {@code on-backend-failure}; deny also if the share of the limit is no token
     * @param share the share of the limit that this instance grants by itself; null unless the rule is local
     */
    record OutageDescriptor(String rule, @Nullable Double share) {

        /**
         * Returns the decisions of a policy at present; null if its backend isn't down, or its buckets are in memory. A
         * backend that is misconfigured may fail for few keys.
         */
        static @Nullable OutageDescriptor of(PolicyThrottler throttler, FailureRule rule, double share) {
            Backend backend = throttler.backend();
            ThrottlePolicy policy = throttler.policy();
            if (backend == null || policy.mode() == Mode.OFF || backend.state().condition() != Condition.DOWN) {
                return null;
            }
            if (rule == FailureRule.LOCAL && !FailoverBucketStore.isNone(share, policy.spec(), 1)) {
                return new OutageDescriptor(text(rule), share);
            }
            return new OutageDescriptor(text(rule == FailureRule.LOCAL ? FailureRule.DENY : rule), null);
        }
    }

    /**
     * @param rate null for a limit of the calls in flight alone, as are the other components of the bucket
     * @param zone the time zone of the calendar; null for another refill
     * @param available the whole tokens that the bucket has at present, without those of guaranteed shares; null for several buckets or an unavailable backend
     * @param fullInMs the milliseconds until the bucket is full, rounded up; null if {@code available} is
     * @param inFlight the calls of a key that may be in flight; null for any number
     */
    record LimitDescriptor(
            @Nullable String rate,
            @Nullable Long capacity,
            @Nullable String refill,
            @Nullable String zone,
            @Nullable Long available,
            @Nullable Long fullInMs,
            @Nullable Integer inFlight,
            @Nullable ChangedDescriptor changed) {

        private static final long NANOS_PER_MILLI = 1_000_000;

        static LimitDescriptor of(BucketSpec spec) {
            return of(spec, null);
        }

        static LimitDescriptor of(BucketSpec spec, @Nullable BucketSnapshot bucket) {
            Integer inFlight = calls(spec);
            if (!spec.hasRate()) {
                return new LimitDescriptor(null, null, null, null, null, null, inFlight, null);
            }
            String refill = text(spec.refill());
            String zone = spec.refill() == Refill.CALENDAR ? spec.zone().toString() : null;
            return bucket == null
                    ? new LimitDescriptor(
                            spec.rate().toString(), spec.capacity(), refill, zone, null, null, inFlight, null)
                    : new LimitDescriptor(
                            bucket.rate().toString(),
                            bucket.capacity(),
                            refill,
                            zone,
                            bucket.available(),
                            bucket.resetAfter().plusNanos(NANOS_PER_MILLI - 1).toMillis(),
                            inFlight,
                            null);
        }

        LimitDescriptor with(@Nullable ChangedDescriptor changed) {
            return new LimitDescriptor(rate, capacity, refill, zone, available, fullInMs, inFlight, changed);
        }
    }

    /** Returns how many calls of a key may be in flight; null for any number. */
    static @Nullable Integer calls(BucketSpec spec) {
        return spec.inFlight() == 0 ? null : spec.inFlight();
    }

    /**
     * The difference of a limit from the configuration, with the configured rate, capacity and calls in flight.
     *
     * @param target the instances that the change is for: all, or instance for this one; {@code for} in the response
     * @param since the time of the change, in ISO-8601, UTC; null if code of the application has made it
     * @param until null for a change without an end
     * @param rate null for a limit of the calls in flight alone; so is {@code capacity}
     * @param inFlight null for any number
     */
    record ChangedDescriptor(
            @JsonProperty("for") String target,
            @Nullable String since,
            @Nullable String until,
            @Nullable String rate,
            @Nullable Long capacity,
            @Nullable Integer inFlight) {

        static @Nullable ChangedDescriptor of(LimitChanges.@Nullable Difference difference) {
            return difference == null
                    ? null
                    : new ChangedDescriptor(
                            instances(difference.forAll()),
                            Objects.toString(difference.since(), null),
                            Objects.toString(difference.until(), null),
                            difference.configured().hasRate()
                                    ? difference.configured().rate().toString()
                                    : null,
                            difference.configured().hasRate()
                                    ? difference.configured().capacity()
                                    : null,
                            calls(difference.configured()));
        }
    }

    /**
     * @param mode the mode for the key of the bucket: enforce, shadow or off
     * @param key null for a global policy without a guaranteed share, or if the policy is off for the key
     * @param limit the limit with the state of the bucket; null if the policy is off for the key
     * @param guaranteed the guaranteed share in words; null if there is none. The limit is then the one that has more tokens:
     *     what all share, or this share
     * @param limitBy the source of requests' own limits, which may differ from {@code limit}; null if there is none
     * @param inFlight the number of calls of the key that run; null if the limit doesn't count them
     * @param backend the backend that holds the bucket; null if it is in memory
     */
    record BucketDescriptor(
            String policy,
            String mode,
            boolean overridden,
            @Nullable KeyDescriptor key,
            @Nullable LimitDescriptor limit,
            @Nullable String guaranteed,
            @Nullable String limitBy,
            @Nullable Integer inFlight,
            List<String> tiers,
            @Nullable BackendDescriptor backend)
            implements OperationResponseBody {}

    /**
     * @param tier the changed tier; null for the policy's own limit
     * @param instances the instances that the change applies to: all or instance
     * @param until the time at which the change ends, in ISO-8601, UTC; null for none
     */
    record ChangeDescriptor(
            String policy,
            @Nullable String tier,
            LimitDescriptor before,
            LimitDescriptor now,
            @JsonProperty("for") String instances,
            @Nullable String until)
            implements OperationResponseBody {}

    /**
     * @param key null for the bucket of a global policy
     * @param limit the limit with the state of the bucket; a bucket that several keys share is unchanged
     * @param instances the instances that the reset applies to: all or instance
     * @param lease the time for which each other instance may still use tokens that it has leased; null for none
     */
    record ResetDescriptor(
            String policy,
            @Nullable KeyDescriptor key,
            LimitDescriptor limit,
            @JsonProperty("for") String instances,
            @Nullable String lease)
            implements OperationResponseBody {}

    /**
     * A key, with its texts only where the configuration allows that.
     *
     * @param hash a hash that is stable until the application stops
     * @param parts the texts of the parts; null if keys are hidden
     * @param missing the names of the parts that the request lacked and that have a placeholder; null if there are none,
     *     or if keys are hidden
     */
    record KeyDescriptor(
            String hash,
            @Nullable List<String> parts,
            @Nullable List<String> missing,
            @Nullable String tier) {

        /** @param key the composed key */
        static KeyDescriptor of(ThrottlePolicy policy, String key, boolean shown) {
            List<String> parts = Keys.parts(key);
            List<String> missing = IntStream.range(0, parts.size())
                    .filter(i -> Keys.isPlaceholder(parts.get(i)))
                    .mapToObj(i -> i < policy.key().size() ? policy.key().get(i) : "part " + (i + 1))
                    .toList();
            String tier = Keys.tier(key);
            return new KeyDescriptor(
                    DeniedKeys.hash(key),
                    shown ? parts.stream().map(KeyDescriptor::validText).toList() : null,
                    shown && !missing.isEmpty() ? missing : null,
                    ThrottlePolicy.isName(tier) ? tier : null);
        }

        /** Replaces unpaired surrogates, which an expression can leave by cutting a text: JSON doesn't allow them. */
        private static String validText(String part) {
            return new String(Keys.text(part).getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
        }
    }

    /**
     * @param denied the lower bound of the number of denials
     * @param shadow true if the policy was in shadow mode for the key, so that no call was rejected; otherwise null
     */
    record DeniedKeyDescriptor(
            KeyDescriptor key, long denied, @Nullable Boolean shadow) {

        static DeniedKeyDescriptor of(ThrottlePolicy policy, DeniedKey key, boolean shown) {
            return new DeniedKeyDescriptor(
                    KeyDescriptor.of(policy, key.key(), shown), key.denied(), key.shadow() ? true : null);
        }
    }

    /**
     * @param condition UP, DOWN or MISCONFIGURED
     * @param since the time of the last change of the condition, in ISO-8601, UTC
     */
    record BackendDescriptor(
            String name,
            String condition,
            String since,
            @Nullable String cause) {

        /** Returns the health of the backend; null if there is none, or no policy uses it: without calls nothing is known. */
        static @Nullable BackendDescriptor ofUsed(@Nullable Backend backend, Throttlers throttlers) {
            boolean isUsed = throttlers.all().stream()
                    .anyMatch(throttler -> throttler.policy().mode() != Mode.OFF && throttler.backend() != null);
            return backend == null || !isUsed ? null : of(backend);
        }

        /** Returns the health of a backend as its latest calls have shown it. */
        static BackendDescriptor of(Backend backend) {
            Backend.State state = backend.state();
            return new BackendDescriptor(
                    backend.name(), state.condition().name(), state.since().toString(), state.cause());
        }
    }
}
