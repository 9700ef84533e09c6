package io.ratelimit.actuate;

import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.UnknownPolicyException;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.aot.hint.annotation.RegisterReflectionForBinding;
import org.springframework.boot.actuate.endpoint.Access;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.Show;
import org.springframework.boot.actuate.endpoint.annotation.DeleteOperation;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;

/**
 * Shows the policies and their buckets, changes limits and forgets buckets. Only shows, unless it is given more access.
 *
 * <p>Refuses by exceptions, which {@link RateLimitsProblems} turns into answers.
 */
@RegisterReflectionForBinding({PolicyView.class, BucketView.class, Problem.class})
@WebEndpoint(id = RateLimitsEndpoint.ID, defaultAccess = Access.READ_ONLY)
public class RateLimitsEndpoint {

    public static final String ID = "ratelimits";

    private static final Log logger = LogFactory.getLog(RateLimitsEndpoint.class);

    private final Throttlers throttlers;
    private final BucketFinder finder;
    private final PolicyViews views;
    private final Show showValues;
    private final Set<String> roles;

    /**
     * @param finder of the buckets that are asked for
     * @param views of the policies
     * @param showValues who sees keys
     * @param roles of those who do, where not all do
     */
    public RateLimitsEndpoint(
            Throttlers throttlers, BucketFinder finder, PolicyViews views, Show showValues, Set<String> roles) {
        this.throttlers = throttlers;
        this.finder = finder;
        this.views = views;
        this.showValues = showValues;
        this.roles = Set.copyOf(roles);
    }

    /** All policies. */
    @ReadOperation
    public PoliciesView policies(SecurityContext security) {
        return views.all(throttlers.all(), shows(security));
    }

    /**
     * A policy, or one of its buckets.
     *
     * @param key the texts of the parts, one or a list of them: not declared as texts, for those would be split at commas
     * @param tier that the bucket is in
     */
    @ReadOperation
    public Object policy(
            SecurityContext security, @Selector String policy, @Nullable Object key, @Nullable String tier) {
        ThrottlePolicy known = throttler(policy).policy();
        if (key == null && tier == null) {
            return views.of(known, shows(security));
        }
        return views.bucket(known, find(known, key, tier), shows(security));
    }

    /**
     * Changes a limit.
     *
     * @param tier whose limit it is; null for the policy's own
     */
    @WriteOperation
    public ChangeView change(
            @Selector String policy, @Nullable String rate, @Nullable String capacity, @Nullable String tier) {
        Throttler throttler = throttler(policy);
        checkTier(throttler.policy(), tier);
        LimitChange change = new LimitChange(rate, capacity);
        if (tier == null) {
            throttler.reconfigure(change);
        } else {
            throttler.reconfigure(tier, change);
        }
        return new ChangeView(
                policy,
                tier,
                LimitView.of(change.before()),
                LimitView.of(change.after()),
                "for this instance, until it stops");
    }

    /** Forgets a bucket. */
    @DeleteOperation
    public ForgottenView forget(
            SecurityContext security, @Selector String policy, @Nullable Object key, @Nullable String tier) {
        ThrottlePolicy known = throttler(policy).policy();
        Charge charge = find(known, key, tier);
        if (charge == null || charge.policy().mode() == Mode.OFF) {
            throw new IllegalArgumentException("the policy is off for this key: there is no bucket");
        }
        throttlers.forget(charge);
        logger.info("Throttle policy '" + policy + "': a bucket was forgotten by way of the actuator");
        return views.forgotten(known, charge, shows(security));
    }

    private boolean shows(SecurityContext security) {
        return showValues.isShown(security, roles);
    }

    private Throttler throttler(String policy) {
        try {
            return throttlers.get(policy);
        } catch (UnknownPolicyException unknown) {
            throw new UnknownLimitException(
                    "no policy has this name; the policies are: " + String.join(", ", new TreeSet<>(unknown.known())));
        }
    }

    private static void checkTier(ThrottlePolicy policy, @Nullable String tier) {
        Set<String> tiers = policy.tiers().keySet();
        if (tier != null && !tiers.contains(tier)) {
            throw new UnknownLimitException("'" + policy.name() + "' has no such tier"
                    + (tiers.isEmpty()
                            ? ", nor any other"
                            : "; its tiers are: " + String.join(", ", new TreeSet<>(tiers))));
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
                    "each 'key' must be more than blanks: the buckets of calls that lack a part can't be asked for");
        }
        return finder.find(policy, texts, tier);
    }
}
