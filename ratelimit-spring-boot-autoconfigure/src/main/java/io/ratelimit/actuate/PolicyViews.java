package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Policies and buckets as an operator sees them. */
public final class PolicyViews {

    private final Throttlers throttlers;
    private final DeniedKeys denied;
    private final Function<ThrottlePolicy, PolicyScope> scopes;
    private final @Nullable Backend backend;
    private final Predicate<ThrottlePolicy> onBackend;

    /**
     * @param denied the keys that policies deny
     * @param scopes what the configuration says of a policy
     * @param backend outside of this process, if there is one
     * @param onBackend which policies have their buckets there
     */
    public PolicyViews(
            Throttlers throttlers,
            DeniedKeys denied,
            Function<ThrottlePolicy, PolicyScope> scopes,
            @Nullable Backend backend,
            Predicate<ThrottlePolicy> onBackend) {
        this.throttlers = throttlers;
        this.denied = denied;
        this.scopes = scopes;
        this.backend = backend;
        this.onBackend = onBackend;
    }

    PoliciesView all(Collection<Throttler> all, boolean shown) {
        Map<String, PolicyView> views = new LinkedHashMap<>();
        all.forEach(throttler -> views.put(throttler.policy().name(), of(throttler.policy(), shown)));
        return new PoliciesView(views, backend == null ? null : BackendView.of(backend));
    }

    PolicyView of(ThrottlePolicy policy, boolean shown) {
        Map<String, LimitView> tiers = new TreeMap<>();
        policy.tiers().forEach((tier, spec) -> tiers.put(tier, limit(policy, spec, tier)));
        return new PolicyView(
                policy.name(),
                Spelling.of(policy.mode()),
                policy.key(),
                limit(policy, policy.spec(), null),
                tiers,
                scopes.apply(policy),
                throttlers.size(policy.name()),
                throttlers.waiting(policy.name()),
                denied.top(policy.name()).stream()
                        .map(key -> denied(policy, key, shown))
                        .toList());
    }

    /** With what is in the bucket, if there is one for all, and anybody takes from it. */
    private LimitView limit(ThrottlePolicy policy, BucketSpec spec, @Nullable String tier) {
        return policy.isGlobal() && policy.mode() != Mode.OFF
                ? limit(Charge.of(policy, tier, "", 1))
                : LimitView.of(spec);
    }

    /** With what is in the bucket, if that can be seen. */
    private LimitView limit(Charge charge) {
        try {
            return LimitView.of(charge.spec(), throttlers.look(charge));
        } catch (BackendException unseen) {
            return LimitView.of(charge.spec());
        }
    }

    static PolicyView.Denied denied(ThrottlePolicy policy, DeniedKey key, boolean shown) {
        return new PolicyView.Denied(
                KeyView.of(policy, key.key(), key.hash(), shown), key.denied(), key.shadow() ? true : null);
    }

    /** @param charge null where the policy is off for the key */
    BucketView bucket(ThrottlePolicy policy, @Nullable Charge charge, boolean shown) {
        boolean seen = charge != null && charge.policy().mode() != Mode.OFF;
        return new BucketView(
                policy.name(),
                Spelling.of(charge == null ? Mode.OFF : charge.policy().mode()),
                charge == null ? policy.mode() != Mode.OFF : charge.policy() != policy,
                charge == null ? null : key(policy, charge, shown),
                charge == null ? null : LimitView.of(charge.spec(), seen ? throttlers.look(charge) : null),
                List.copyOf(new TreeSet<>(policy.tiers().keySet())),
                onBackend.test(policy) && backend != null ? BackendView.of(backend) : null);
    }

    ForgottenView forgotten(ThrottlePolicy policy, Charge charge, boolean shown) {
        return new ForgottenView(
                policy.name(),
                key(policy, charge, shown),
                limit(charge),
                onBackend.test(policy) ? "for all instances" : "for this instance");
    }

    private @Nullable KeyView key(ThrottlePolicy policy, Charge charge, boolean shown) {
        return charge.key().isEmpty() ? null : KeyView.of(policy, charge.key(), denied.hash(charge.key()), shown);
    }
}
