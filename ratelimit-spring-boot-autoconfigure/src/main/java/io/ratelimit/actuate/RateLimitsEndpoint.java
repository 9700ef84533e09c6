package io.ratelimit.actuate;

import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Shares;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.Throttlers.UnknownPolicyException;
import io.ratelimit.actuate.DemandReader.PolicyDemandDescriptor;
import io.ratelimit.actuate.Descriptors.BucketDescriptor;
import io.ratelimit.actuate.Descriptors.ChangeDescriptor;
import io.ratelimit.actuate.Descriptors.KeyDescriptor;
import io.ratelimit.actuate.Descriptors.PoliciesDescriptor;
import io.ratelimit.actuate.Descriptors.PolicyDescriptor;
import io.ratelimit.actuate.Descriptors.ResetDescriptor;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.change.LimitChanges.Changed;
import io.ratelimit.demand.Demand;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.security.Principal;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.aot.hint.annotation.RegisterReflectionForBinding;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.audit.AuditEvent;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.Show;
import org.springframework.boot.actuate.endpoint.annotation.DeleteOperation;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The actuator endpoint that shows policies and buckets, changes limits and resets buckets. It is read-only by default.
 *
 * <p>Operations throw exceptions for invalid requests; {@link RateLimitsProblems} converts them to responses.
 */
@RegisterReflectionForBinding({
    PolicyDescriptor.class,
    BucketDescriptor.class,
    PolicyDemandDescriptor.class,
    RateLimitsProblems.Problem.class
})
@WebEndpoint(id = RateLimitsEndpoint.ID, defaultAccess = Access.READ_ONLY)
public class RateLimitsEndpoint {

    static final String ID = "ratelimits";

    private static final Log logger = LogFactory.getLog(RateLimitsEndpoint.class);

    private final Throttlers throttlers;
    private final LimitChanges changes;
    private final BucketLocator buckets;
    private final DescriptorFactory descriptors;
    private final @Nullable DemandReader demand;
    private final Predicate<SecurityContext> showsKeys;
    private final Consumer<AuditEvent> audit;

    /**
     * @param demand reads the demand of policies; null if it isn't measured
     * @param showsKeys whether a caller sees the texts of keys instead of hashes
     * @param audit receives an event for each change of a limit and each reset of a bucket
     */
    RateLimitsEndpoint(
            Throttlers throttlers,
            LimitChanges changes,
            BucketLocator buckets,
            DescriptorFactory descriptors,
            @Nullable DemandReader demand,
            Predicate<SecurityContext> showsKeys,
            Consumer<AuditEvent> audit) {
        this.throttlers = throttlers;
        this.changes = changes;
        this.buckets = buckets;
        this.descriptors = descriptors;
        this.demand = demand;
        this.showsKeys = showsKeys;
        this.audit = audit;
    }

    @ReadOperation
    PoliciesDescriptor policies(SecurityContext security) {
        return descriptors.policies(throttlers.all(), showsKeys.test(security));
    }

    /**
     * Returns a policy, or one of its buckets or shares if a key or a tier is given.
     *
     * @param key the text of each key part, one or a list; not declared as strings, which Spring would split at commas
     * @param tier the tier of the bucket, or the name of the share
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
        if (!found.spec().hasRate()) {
            throw new RateLimitsProblems.NotFoundException(
                    "the policy has no rate of its own, so its demand is not measured");
        }
        return demand.read(found, Demand.parseTouch(touch), Demand.parseWithin(within), showsKeys.test(security));
    }

    /**
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
            @Nullable String inFlight,
            @Nullable String tier,
            @Nullable String target,
            @Nullable String until) {
        checkTier(throttler(policy).policy(), tier);
        if (isForAll(target)) {
            return changed(security, policy, tier, changes.changeForAll(policy, tier, rate, capacity, inFlight, until));
        }
        if (until != null) {
            throw new IllegalArgumentException("'until' needs \"for\": \"all\"; a change of one instance has no end");
        }
        return changed(security, policy, tier, changes.changeHere(policy, tier, rate, capacity, inFlight));
    }

    private ChangeDescriptor changed(SecurityContext security, String policy, @Nullable String tier, Changed changed) {
        ChangeDescriptor change = descriptors.change(policy, tier, changed);
        Map<String, Object> details = new TreeMap<>(Map.of(
                "before", changed.before().toString(), "now", changed.after().toString(), "for", change.instances()));
        if (change.until() != null) {
            details.put("until", change.until());
        }
        log(security, policy, "the limit was changed");
        audit(security, "RATE_LIMIT_CHANGED", policy, tier, details);
        return change;
    }

    private static boolean isForAll(@Nullable String target) {
        if (target == null || target.equals(Descriptors.INSTANCE)) {
            return false;
        }
        if (target.equals(Descriptors.ALL)) {
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
        return changed(security, policy, tier, reverted);
    }

    /** Resets a bucket, so that the next call with its key finds it full. */
    @DeleteOperation
    ResetDescriptor reset(
            SecurityContext security, @Selector String policy, @Nullable Object key, @Nullable String tier) {
        ThrottlePolicy found = throttler(policy).policy();
        if (found.shares() != null && (key != null || tier != null)) {
            throw new IllegalArgumentException(
                    "a guaranteed share can't be reset alone, since its tokens are those of the policy's bucket:"
                            + " without 'key' and 'tier', the bucket and all shares are reset");
        }
        Charge charge = find(found, key, tier);
        if (charge == null || charge.policy().mode() == Mode.OFF) {
            throw new IllegalArgumentException("the policy is off for this key, so the key has no bucket");
        }
        if (!charge.spec().hasRate()) {
            throw new IllegalArgumentException(
                    "the limit has no rate, so the key has no bucket; requests in flight can't be reset");
        }
        throttlers.reset(charge);
        log(security, policy, "a bucket was reset");
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

    /** Logs who did it. A name is the application's, but may come from a token: it can't begin another line. */
    private static void log(SecurityContext security, String policy, String done) {
        Principal user = security.getPrincipal();
        String by = user == null ? "" : " by " + user.getName().replaceAll("\\p{C}|\\p{Zl}|\\p{Zp}", "?");
        logger.info("Throttle policy '" + policy + "': " + done + " through the actuator" + by);
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
        Shares shares = policy.shares();
        if (shares == null || tier == null || !shares.names().contains(tier)) {
            checkTier(policy, tier);
        }
        List<String> texts = key == null
                ? List.of()
                : key instanceof Collection<?> several
                        ? several.stream().map(String::valueOf).toList()
                        : List.of(key.toString());
        if (texts.stream().anyMatch(String::isBlank)) {
            throw new IllegalArgumentException(
                    "each 'key' must be more than blanks; buckets of requests without a key part can't be requested");
        }
        return buckets.find(policy, texts, tier);
    }

    /**
     * Configuration properties of the actuator endpoint ratelimits.
     *
     * @param showValues When to show the texts of keys, which may be names and addresses of users. Hashes are shown otherwise.
     * @param roles Roles of users that see the texts of keys when authorized. Without roles, each authenticated user sees them.
     */
    @ConfigurationProperties("management.endpoint.ratelimits")
    public record Properties(
            @DefaultValue("never") Show showValues,
            @DefaultValue Set<String> roles) {

        boolean showsKeys(SecurityContext security) {
            return showValues.isShown(security, roles);
        }
    }

    /**
     * Locates the bucket for the written form of a key, by the same rules as for requests. Immutable.
     *
     * @param operations the annotated methods, which can have keys of their own; null if there are none
     * @param endpoints the application's endpoints, looked up with a request: they contain the actuator's own
     */
    record BucketLocator(
            ConfiguredPolicies policies,
            @Nullable RateLimitedOperations operations,
            ObjectProvider<Endpoints> endpoints) {

        /**
         * Returns the charge of a call of one token with this key.
         *
         * @param policy the policy in its present version
         * @param key the text of each part of the key, or of the key of a guaranteed share, none blank; empty for a global policy
         * @param tier one of the policy's tiers, or the name of a share; null for none
         * @return null if the policy is off for the key
         * @throws IllegalArgumentException if no call of the policy can have the key; the message doesn't contain the key
         */
        @Nullable
        Charge find(ThrottlePolicy policy, List<String> key, @Nullable String tier) {
            Policy configured = policies.properties(policy.name());
            RequestKey requestKey = new RequestKey(
                    configured == null ? List.of() : configured.key(),
                    configured == null ? MissingKey.SHARED : configured.onMissingKey(),
                    policies.overrides(policy.name()),
                    null,
                    null,
                    List.of(),
                    policies.failures(),
                    ThrottleListener.NONE);
            if (key.isEmpty() && policy.isGlobal()) {
                return requestKey.charge(policy, 1, null, tier);
            }
            if (!key.isEmpty() && operations != null && operations.giveAllKeys(policy.name())) {
                return requestKey.ofTexts().charge(policy, key.toArray(String[]::new), 1, Current.NONE, tier);
            }
            String[] parts = parts(policy, key).toArray(String[]::new);
            if (!shareKey(policy).isEmpty()) {
                Arrays.setAll(parts, i -> Keys.part(parts[i], policy.ignoreCase()));
                return Charge.of(policy, "", 1).guaranteedTo(Keys.join(parts));
            }
            return requestKey.charge(policy, parts, 1, Current.NONE, tier);
        }

        /** Returns the names of the parts of the key that selects a guaranteed share; empty if no keys have shares. */
        private static List<String> shareKey(ThrottlePolicy policy) {
            return policy.shares() == null ? List.of() : policy.shares().key();
        }

        private List<String> parts(ThrottlePolicy policy, List<String> key) {
            try {
                boolean hasEndpoint = policies.get(policy.name()) != null
                        && (policy.key().contains("endpoint")
                                || shareKey(policy).contains("endpoint"));
                return policies.parseKey(
                        policy, key, hasEndpoint ? endpoints.getObject().names() : List.of());
            } catch (IllegalArgumentException unreadable) {
                if (operations != null && operations.givesKeys(policy.name()) && !key.isEmpty()) {
                    return key;
                }
                throw unreadable;
            }
        }
    }
}
