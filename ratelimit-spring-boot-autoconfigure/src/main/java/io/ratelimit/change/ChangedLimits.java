package io.ratelimit.change;

import io.ratelimit.BucketSpec;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.change.DatedChange.LimitChange;
import io.ratelimit.change.LimitChanges.Changed;
import io.ratelimit.change.LimitChanges.Difference;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/** The limits of this instance, each with the newest change of it. Thread-safe. */
final class ChangedLimits {

    private static final Log logger = LogFactory.getLog(LimitChanges.class);

    private final Throttlers throttlers;
    private final Map<Limit, DatedChange> changes = new HashMap<>();

    /** The limits whose change for all instances has ended by its time. It holds again if the clock was wrong then. */
    private final Set<Limit> ended = new HashSet<>();

    ChangedLimits(Throttlers throttlers) {
        this.throttlers = throttlers;
    }

    /** Returns the texts of all limits that can be changed. */
    List<String> names() {
        List<String> names = new ArrayList<>();
        for (PolicyThrottler throttler : throttlers.all()) {
            String policy = throttler.policy().name();
            names.add(policy);
            throttler.policy().tiers().keySet().forEach(tier -> names.add(new Limit(policy, tier).text()));
        }
        return names;
    }

    PolicyThrottler throttler(Limit limit) {
        return throttlers.get(limit.policy());
    }

    BucketSpec spec(Limit limit) {
        return limit.in(throttler(limit).policy());
    }

    BucketSpec configured(Limit limit) {
        return limit.in(throttler(limit).configured());
    }

    /** Returns how a limit differs from the configuration; null if it doesn't. */
    @Nullable
    Difference difference(Limit limit) {
        BucketSpec configured = configured(limit);
        BucketSpec spec = spec(limit);
        if (spec.equals(configured)) {
            return null;
        }
        DatedChange change = changeOf(limit);
        return change == null || !change.spec().equals(spec)
                ? new Difference(false, null, null, configured)
                : new Difference(change.forAll(), change.since(), change.until(), configured);
    }

    private synchronized @Nullable DatedChange changeOf(Limit limit) {
        return changes.get(limit);
    }

    synchronized Changed changeHere(Limit limit, LimitChange change, Instant now) {
        BucketSpec before = spec(limit);
        BucketSpec after = change.apply(before);
        apply(limit, new DatedChange(after, now, null, false));
        return new Changed(before, after, false, null);
    }

    /** @throws IllegalArgumentException if a check of the policy refuses the change */
    synchronized void apply(Limit limit, DatedChange change) {
        reconfigure(limit, change.spec());
        changes.put(limit, change);
        ended.remove(limit);
    }

    /** Like {@link #apply}, for a change for all instances that may have ended before this instance saw it. */
    synchronized void follow(Limit limit, DatedChange change, Instant now) {
        if (change.isPast(now)) {
            end(limit);
            ended.add(limit);
        } else {
            apply(limit, change);
        }
    }

    synchronized void revert(Limit limit) {
        BucketSpec configured = configured(limit);
        changes.remove(limit);
        ended.remove(limit);
        reconfigure(limit, configured);
    }

    /** Returns whether the change of a limit for all instances has ended by its time, and the limit wasn't changed since. */
    synchronized boolean hasEnded(Limit limit) {
        return ended.contains(limit) && spec(limit).equals(configured(limit));
    }

    synchronized void endPast(Instant now) {
        Map.copyOf(changes).forEach((limit, change) -> {
            if (change.isPast(now)) {
                follow(limit, change, now);
            }
        });
    }

    /** Ends the change of a limit for all instances, unless the limit was changed on this instance since. */
    synchronized void end(Limit limit) {
        ended.remove(limit);
        DatedChange change = changes.get(limit);
        if (change == null || !change.forAll()) {
            return;
        }
        changes.remove(limit);
        if (change.spec().equals(spec(limit))) {
            try {
                reconfigure(limit, configured(limit));
            } catch (IllegalArgumentException refused) {
                logger.warn(
                        "The change of '" + limit.text() + "' for all instances has ended, but the configured limit is"
                                + " refused, so the present limit stays: " + refused.getMessage());
            }
        }
    }

    private void reconfigure(Limit limit, BucketSpec spec) {
        if (limit.tier() == null) {
            throttler(limit).reconfigure(spec);
        } else {
            throttler(limit).reconfigure(limit.tier(), spec);
        }
    }

    /**
     * The name of a limit that can be changed: a policy's own, or that of one of its tiers.
     *
     * @param tier null for the policy's own limit
     */
    record Limit(String policy, @Nullable String tier) {

        static Limit of(String text) {
            int slash = text.indexOf('/');
            return slash < 0 ? new Limit(text, null) : new Limit(text.substring(0, slash), text.substring(slash + 1));
        }

        String text() {
            return tier == null ? policy : policy + "/" + tier;
        }

        BucketSpec in(ThrottlePolicy version) {
            BucketSpec spec = tier == null ? version.spec() : version.tiers().get(tier);
            if (spec == null) {
                throw new IllegalArgumentException("the policy has no such tier");
            }
            return spec;
        }

        ThrottlePolicy with(BucketSpec spec, ThrottlePolicy version) {
            if (tier == null) {
                return version.withSpec(spec);
            }
            Map<String, BucketSpec> tiers = new HashMap<>(version.tiers());
            tiers.put(tier, spec);
            return version.withTiers(tiers);
        }
    }
}
