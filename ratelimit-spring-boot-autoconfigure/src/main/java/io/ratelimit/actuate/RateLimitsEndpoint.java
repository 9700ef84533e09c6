package io.ratelimit.actuate;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.ratelimit.Backend;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.Throttlers.UnknownPolicyException;
import io.ratelimit.actuate.DeniedKeys.DeniedKey;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.change.LimitChanges.Changed;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.DemandListener;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.aot.hint.annotation.RegisterReflectionForBinding;
import org.springframework.boot.actuate.audit.AuditEvent;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.OperationResponseBody;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.annotation.DeleteOperation;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvokerAdvisor;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;

/**
 * The actuator endpoint that shows policies and buckets, changes limits and resets buckets. It is read-only by default.
 *
 * <p>Operations throw exceptions for invalid requests; {@link #problems} converts them to responses.
 */
@RegisterReflectionForBinding({
    RateLimitsEndpoint.PolicyDescriptor.class,
    RateLimitsEndpoint.BucketDescriptor.class,
    PolicyDemandDescriptor.class,
    RateLimitsProblems.Problem.class
})
@WebEndpoint(id = RateLimitsEndpoint.ID, defaultAccess = Access.READ_ONLY)
public class RateLimitsEndpoint {

    /** The id of the endpoint. */
    public static final String ID = "ratelimits";

    private static final Log logger = LogFactory.getLog(RateLimitsEndpoint.class);

    private final Throttlers throttlers;
    private final BucketFinder bucketFinder;
    private final DescriptorFactory descriptors;
    private final LimitChanges changes;
    private final @Nullable DemandListener demand;
    private final Predicate<ThrottlePolicy> refunds;
    private final Predicate<SecurityContext> showsKeys;
    private final Consumer<AuditEvent> audit;

    /**
     * @param changes changes limits
     * @param bucketFinder finds the bucket of a request's {@code key} parameters
     * @param deniedKeys the keys that each policy denies most
     * @param demand the demand of all policies; null if it isn't measured
     * @param refunds whether a policy gives tokens back, which the demand counts as used
     * @param scopes describes the configuration of a policy
     * @param backend the remote backend; null if there is none
     * @param showsKeys whether a caller sees the texts of keys instead of hashes
     * @param audit receives an event for each change of a limit and each reset of a bucket
     */
    public RateLimitsEndpoint(
            Throttlers throttlers,
            LimitChanges changes,
            BucketFinder bucketFinder,
            DeniedKeys deniedKeys,
            @Nullable DemandListener demand,
            Predicate<ThrottlePolicy> refunds,
            Function<ThrottlePolicy, ScopeDescriptor> scopes,
            @Nullable Backend backend,
            Predicate<SecurityContext> showsKeys,
            Consumer<AuditEvent> audit) {
        this.throttlers = throttlers;
        this.bucketFinder = bucketFinder;
        this.changes = changes;
        this.descriptors = new DescriptorFactory(throttlers, changes, deniedKeys, scopes, backend);
        this.demand = demand;
        this.refunds = refunds;
        this.showsKeys = showsKeys;
        this.audit = audit;
    }

    /** Returns all policies. */
    @ReadOperation
    PoliciesDescriptor policies(SecurityContext security) {
        return descriptors.policies(throttlers.all(), showsKeys.test(security));
    }

    /**
     * Returns a policy, or one of its buckets if a key or a tier is given.
     *
     * @param key the text of each key part, one or a list; not declared as strings, which Spring would split at commas
     * @param tier the tier of the bucket
     */
    @ReadOperation
    Object policy(SecurityContext security, @Selector String policy, @Nullable Object key, @Nullable String tier) {
        ThrottlePolicy found = throttler(policy).policy();
        if (key == null && tier == null) {
            return descriptors.policy(found, showsKeys.test(security));
        }
        return descriptors.bucket(found, find(found, key, tier), showsKeys.test(security));
    }

    /**
     * Returns the demand of a policy, and of each of its tiers.
     *
     * @param view {@code demand}, the only part of a policy that has a path of its own
     * @param touch the share of keys that the suggested limit may touch, such as {@code 0.1%} or {@code 0.001}
     * @param within the time over which harm adds up, such as {@code 1m}
     */
    @ReadOperation
    PolicyDemandDescriptor demand(
            SecurityContext security,
            @Selector String policy,
            @Selector String view,
            @Nullable String touch,
            @Nullable String within) {
        ThrottlePolicy found = throttler(policy).policy();
        if (!view.equals(RateLimitsProblems.DEMAND)) {
            throw new RateLimitsProblems.NotFoundException(
                    "a policy has only the path '" + RateLimitsProblems.DEMAND + "' to read below it");
        }
        if (demand == null) {
            throw new RateLimitsProblems.NotFoundException(
                    "demand is not measured, because 'ratelimit.demand.enabled' is false");
        }
        return new DemandReader(demand, Demand.parseTouch(touch), Demand.parseWithin(within), refunds)
                .read(found, key -> descriptors.key(found, key, showsKeys.test(security)));
    }

    /**
     * Changes a limit.
     *
     * @param tier the tier to change; null for the policy's own limit
     * @param target {@code all} for all instances, {@code instance} or null for this one; {@code for} in the request
     * @param until the end of a change for all instances, such as {@code 2h} or {@code 2026-11-22T18:00:00Z}; null for none
     */
    @WriteOperation
    ChangeDescriptor change(
            SecurityContext security,
            @Selector String policy,
            @Nullable String rate,
            @Nullable String capacity,
            @Nullable String tier,
            @Nullable String target,
            @Nullable String until) {
        checkTier(throttler(policy).policy(), tier);
        if (isForAll(target)) {
            Changed changed = changes.changeForAll(policy, tier, rate, capacity, until);
            return changed(
                    security,
                    policy,
                    tier,
                    changed,
                    "for all instances, until " + (changed.until() == null ? "it is taken back" : changed.until()));
        }
        if (until != null) {
            throw new IllegalArgumentException("'until' needs \"for\": \"all\"; a change of one instance has no end");
        }
        return changed(
                security,
                policy,
                tier,
                changes.changeHere(policy, tier, rate, capacity),
                "for this instance, until it stops");
    }

    private ChangeDescriptor changed(
            SecurityContext security, String policy, @Nullable String tier, Changed changed, String holds) {
        BucketSpec before = changed.before();
        BucketSpec now = changed.after();
        audit(
                security,
                "RATE_LIMIT_CHANGED",
                policy,
                tier,
                Map.of("before", before.toString(), "now", now.toString(), "holds", holds));
        return descriptors.change(policy, tier, before, now, holds);
    }

    private static boolean isForAll(@Nullable String target) {
        if (target == null || target.equals(ChangedDescriptor.INSTANCE)) {
            return false;
        }
        if (target.equals(ChangedDescriptor.ALL)) {
            return true;
        }
        throw new IllegalArgumentException("'for' must be 'all' or 'instance'");
    }

    /**
     * Reverts the changes of a limit, for all instances if there is such a change, and for this instance.
     *
     * @param view {@code change}, the only path below a policy with something to delete
     * @param tier the tier of the limit; null for the policy's own limit
     */
    @DeleteOperation
    ChangeDescriptor revert(
            SecurityContext security, @Selector String policy, @Selector String view, @Nullable String tier) {
        checkTier(throttler(policy).policy(), tier);
        if (!view.equals(RateLimitsProblems.CHANGE)) {
            throw new RateLimitsProblems.NotFoundException(
                    "below a policy, only '" + RateLimitsProblems.CHANGE + "' can be deleted");
        }
        Changed reverted = changes.revert(policy, tier);
        if (!reverted.forAll() && reverted.after().equals(reverted.before())) {
            throw new RateLimitsProblems.NotFoundException("the limit is that of the configuration");
        }
        String instances = reverted.forAll() ? "for all instances" : "for this instance";
        return changed(security, policy, tier, reverted, instances + ", as configured");
    }

    /** Resets a bucket, so that the next call with its key finds it full. */
    @DeleteOperation
    ResetDescriptor reset(
            SecurityContext security, @Selector String policy, @Nullable Object key, @Nullable String tier) {
        ThrottlePolicy found = throttler(policy).policy();
        Charge charge = find(found, key, tier);
        if (charge == null || charge.policy().mode() == Mode.OFF) {
            throw new IllegalArgumentException("the policy is off for this key, so the key has no bucket");
        }
        throttlers.reset(charge);
        logger.info("Throttle policy '" + policy + "': a bucket was reset through the actuator");
        ResetDescriptor reset = descriptors.reset(found, charge, showsKeys.test(security));
        KeyDescriptor bucket = reset.key();
        audit(
                security,
                "RATE_LIMIT_RESET",
                policy,
                tier,
                bucket == null ? Map.of() : Map.of("key", bucket.parts() == null ? bucket.hash() : bucket.parts()));
        return reset;
    }

    /** Reports a change by the user, or by an empty name if the endpoint needs no authentication. */
    private void audit(
            SecurityContext security, String type, String policy, @Nullable String tier, Map<String, Object> details) {
        Map<String, Object> data = new TreeMap<>(details);
        data.put("policy", policy);
        if (tier != null) {
            data.put("tier", tier);
        }
        Principal user = security.getPrincipal();
        audit.accept(new AuditEvent(user == null ? "" : user.getName(), type, data));
    }

    private PolicyThrottler throttler(String policy) {
        try {
            return throttlers.get(policy);
        } catch (UnknownPolicyException unknown) {
            throw new RateLimitsProblems.NotFoundException("no policy has this name; the policies are: "
                    + String.join(", ", new TreeSet<>(unknown.policies())));
        }
    }

    private static void checkTier(ThrottlePolicy policy, @Nullable String tier) {
        Set<String> tiers = policy.tiers().keySet();
        if (tier != null && !tiers.contains(tier)) {
            throw new RateLimitsProblems.NotFoundException(
                    tiers.isEmpty()
                            ? "'" + policy.name() + "' has no tiers"
                            : "'" + policy.name() + "' has no such tier; its tiers are: "
                                    + String.join(", ", new TreeSet<>(tiers)));
        }
    }

    private @Nullable Charge find(ThrottlePolicy policy, @Nullable Object key, @Nullable String tier) {
        checkTier(policy, tier);
        List<String> texts = key == null
                ? List.of()
                : key instanceof Collection<?> several
                        ? several.stream().map(String::valueOf).toList()
                        : List.of(key.toString());
        if (texts.stream().anyMatch(String::isBlank)) {
            throw new IllegalArgumentException(
                    "each 'key' must be more than blanks; buckets of requests without a key part can't be requested");
        }
        return bucketFinder.find(policy, texts, tier);
    }

    /** Returns the advisor that answers invalid requests to the endpoint with problem documents. */
    public static OperationInvokerAdvisor problems() {
        return new RateLimitsProblems();
    }

    /** Returns a constant as application.yml spells it, such as {@code before-authentication}. */
    public static String text(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** Finds the bucket for a key that an operator has typed. */
    @FunctionalInterface
    public interface BucketFinder {

        /**
         * Returns the charge of a call of one token with this key.
         *
         * @param policy the policy in its present version
         * @param key the text of each key part, none blank; empty for a global policy
         * @param tier one of the policy's tiers; null for none
         * @return null if the policy is off for the key
         * @throws IllegalArgumentException if no call of the policy can have the key; the message doesn't contain the key
         */
        @Nullable
        Charge find(ThrottlePolicy policy, List<String> key, @Nullable String tier);
    }

    /**
     * The response that contains all policies.
     *
     * @param policies the policies by name
     * @param backend the backend that holds buckets of some policies; null if all are in memory
     */
    record PoliciesDescriptor(
            Map<String, PolicyDescriptor> policies,
            @Nullable BackendDescriptor backend) implements OperationResponseBody {}

    /**
     * A policy.
     *
     * @param mode enforce, shadow or off
     * @param key the names of the key parts; empty for a global policy
     * @param limit the policy's own limit; for a global policy with the state of its bucket
     * @param tiers the limits of the tiers by name; for a global policy with the states of their buckets
     * @param lease the time for which the instance takes tokens from the backend ahead; null if it doesn't
     * @param buckets the number of buckets in this instance
     * @param waiting the number of queued calls
     * @param deniedMost the keys denied most in the last minutes
     */
    record PolicyDescriptor(
            String policy,
            String mode,
            List<String> key,
            LimitDescriptor limit,
            Map<String, LimitDescriptor> tiers,
            ScopeDescriptor scope,
            @Nullable String lease,
            long buckets,
            int waiting,
            List<DeniedKeyDescriptor> deniedMost)
            implements OperationResponseBody {}

    /**
     * The configuration of a policy apart from its limit.
     *
     * @param appliesTo requests, annotated or code
     * @param phase the phase of the filter; null if the filter doesn't use the policy
     * @param paths the path patterns; empty for all paths
     * @param excludePaths the path patterns that are excluded
     * @param methods the HTTP methods; empty for all
     * @param overrides the number of keys and networks with an override
     * @param limitBy the source of requests' own limits; null if there is none
     * @param backend the backend of the buckets
     * @param onBackendFailure the rule for a failed backend; null if the buckets are in memory
     */
    public record ScopeDescriptor(
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
     * The rate and the capacity of buckets, and the state of the bucket if there is a single one.
     *
     * @param zone the time zone of the calendar; null for another refill
     * @param available the whole tokens in the bucket at present; null for several buckets or an unavailable backend
     * @param fullInMs the milliseconds until the bucket is full, rounded up; null if {@code available} is
     * @param changed the difference from the configuration; null if there is none
     */
    record LimitDescriptor(
            String rate,
            long capacity,
            String refill,
            @Nullable String zone,
            @Nullable Long available,
            @Nullable Long fullInMs,
            @Nullable ChangedDescriptor changed) {

        private static final long NANOS_PER_MILLI = 1_000_000;

        static LimitDescriptor of(BucketSpec spec) {
            return of(spec, null);
        }

        static LimitDescriptor of(BucketSpec spec, @Nullable BucketSnapshot bucket) {
            String refill = text(spec.refill());
            String zone = spec.refill() == Refill.CALENDAR ? spec.zone().toString() : null;
            return bucket == null
                    ? new LimitDescriptor(spec.rate().toString(), spec.capacity(), refill, zone, null, null, null)
                    : new LimitDescriptor(
                            bucket.rate().toString(),
                            bucket.capacity(),
                            refill,
                            zone,
                            bucket.available(),
                            bucket.resetAfter().plusNanos(NANOS_PER_MILLI - 1).toMillis(),
                            null);
        }

        LimitDescriptor with(@Nullable ChangedDescriptor changed) {
            return new LimitDescriptor(rate, capacity, refill, zone, available, fullInMs, changed);
        }
    }

    /**
     * The difference of a limit from the configuration.
     *
     * @param target the instances that the change is for: all, or instance for this one; {@code for} in the response
     * @param since the time of the change, in ISO-8601, UTC; null if code of the application has made it
     * @param until the time at which the change ends; null for none
     * @param rate the configured rate
     * @param capacity the configured capacity
     */
    public record ChangedDescriptor(
            @JsonProperty("for") String target,
            @Nullable String since,
            @Nullable String until,
            String rate,
            long capacity) {

        static final String ALL = "all";
        static final String INSTANCE = "instance";

        /** Returns the description of a difference; null for null. */
        public static @Nullable ChangedDescriptor of(LimitChanges.@Nullable Difference difference) {
            return difference == null
                    ? null
                    : new ChangedDescriptor(
                            difference.forAll() ? ALL : INSTANCE,
                            difference.since() == null
                                    ? null
                                    : difference.since().toString(),
                            difference.until() == null
                                    ? null
                                    : difference.until().toString(),
                            difference.configured().rate().toString(),
                            difference.configured().capacity());
        }
    }

    /**
     * One bucket.
     *
     * @param mode the mode for the key of the bucket: enforce, shadow or off
     * @param overridden whether an override applies to the key
     * @param key null for a global policy, or if the policy is off for the key
     * @param limit the limit with the state of the bucket; null if the policy is off for the key
     * @param limitBy the source of requests' own limits, which may differ from {@code limit}; null if there is none
     * @param tiers the tiers of the policy, each of which has another bucket for the key
     * @param backend the backend that holds the bucket; null if it is in memory
     */
    record BucketDescriptor(
            String policy,
            String mode,
            boolean overridden,
            @Nullable KeyDescriptor key,
            @Nullable LimitDescriptor limit,
            @Nullable String limitBy,
            List<String> tiers,
            @Nullable BackendDescriptor backend)
            implements OperationResponseBody {}

    /**
     * A change of a limit.
     *
     * @param tier the changed tier; null for the policy's own limit
     * @param now the limit after the change
     * @param holds where and how long the change is valid
     */
    record ChangeDescriptor(
            String policy, @Nullable String tier, LimitDescriptor before, LimitDescriptor now, String holds)
            implements OperationResponseBody {}

    /**
     * A bucket that was reset.
     *
     * @param key null for the bucket of a global policy
     * @param limit the limit with the state of the bucket; a bucket that several keys share is unchanged
     * @param holds the instances that the reset applies to
     */
    record ResetDescriptor(String policy, @Nullable KeyDescriptor key, LimitDescriptor limit, String holds)
            implements OperationResponseBody {}

    /**
     * A key, with its texts only where the configuration allows that.
     *
     * @param hash a hash that is stable until the application stops
     * @param parts the texts of the parts; null if keys are hidden
     * @param missing the names of the parts that the request lacked and that have a placeholder; null if there are none,
     *     or if keys are hidden
     * @param tier the tier of the bucket; null for none
     */
    public record KeyDescriptor(
            String hash,
            @Nullable List<String> parts,
            @Nullable List<String> missing,
            @Nullable String tier) {

        /**
         * @param key the composed key
         * @param shown whether to include the texts
         */
        static KeyDescriptor of(ThrottlePolicy policy, String key, String hash, boolean shown) {
            List<String> parts = Keys.parts(key);
            List<String> missing = IntStream.range(0, parts.size())
                    .filter(i -> Keys.isPlaceholder(parts.get(i)))
                    .mapToObj(i -> i < policy.key().size() ? policy.key().get(i) : "part " + (i + 1))
                    .toList();
            String tier = Keys.tier(key);
            return new KeyDescriptor(
                    hash,
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
     * A key that a policy denies often.
     *
     * @param denied the lower bound of the number of denials
     * @param shadow true if the policy was in shadow mode for the key, so that no call was rejected; otherwise null
     */
    public record DeniedKeyDescriptor(
            KeyDescriptor key, long denied, @Nullable Boolean shadow) {

        /** @param shown whether to include the texts of the key */
        public static DeniedKeyDescriptor of(ThrottlePolicy policy, DeniedKey key, boolean shown) {
            return new DeniedKeyDescriptor(
                    KeyDescriptor.of(policy, key.key(), key.hash(), shown), key.denied(), key.shadow() ? true : null);
        }
    }

    /**
     * The health of a backend.
     *
     * @param name the name of the backend, such as Redis
     * @param condition UP, DOWN or MISCONFIGURED
     * @param since the time of the last change of the condition, in ISO-8601, UTC
     * @param cause the cause of the failure; null if there is none
     */
    public record BackendDescriptor(
            String name,
            String condition,
            String since,
            @Nullable String cause) {

        /** Returns the health of the backend; null if there is none, or no policy uses it: without calls nothing is known. */
        public static @Nullable BackendDescriptor ofUsed(@Nullable Backend backend, Throttlers throttlers) {
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
