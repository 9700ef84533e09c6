package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.RequestFacts.Current;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The key of a policy, which determines the bucket that a request charges. Thread-safe.
 *
 * @param parts the parts of the key, in order; none for a global policy
 * @param onMissing the treatment of a request that lacks a part
 * @param overrides the overrides, which take precedence over tiers and a request's own limit
 * @param tier the selection of a tier; null if the policy has no tiers
 * @param limit the source of a request's own limit, which takes precedence over that of its tier; null for none
 * @param lane the parts of the key of a guaranteed share; none if no keys have shares. A request that lacks one has no share
 * @param failures receives a call for each part, tier or limit whose resolver throws; it counts as missing
 * @param listener receives an event for each request that lacks a part, for each that an override exempts, and for
 *     each whose limit fails
 */
public record RequestKey(
        List<KeyPart> parts,
        MissingKey onMissing,
        OverrideTable overrides,
        @Nullable RequestTier tier,
        @Nullable RequestLimit limit,
        List<KeyPart> lane,
        FailureListener failures,
        ThrottleListener listener) {

    /** The treatment of a request that has no text for a part of a policy's key. */
    public enum MissingKey {

        /** The client's address becomes the placeholder of the part. */
        CLIENT_IP,

        /** Requests without the part share one placeholder. */
        SHARED,

        /** The policy denies the request. */
        DENY,

        /** The policy doesn't apply to the request. */
        SKIP
    }

    private static final String GLOBAL = "";

    public RequestKey {
        parts = List.copyOf(parts);
        lane = List.copyOf(lane);
    }

    /** Creates a key without overrides and tiers. */
    public RequestKey(List<KeyPart> parts, MissingKey onMissing, FailureListener failures, ThrottleListener listener) {
        this(parts, onMissing, OverrideTable.NONE, null, null, List.of(), failures, listener);
    }

    /**
     * Returns this key for texts that a method's arguments have in place of the parts. An override of addresses doesn't match
     * them: they may be chosen by a client.
     */
    public RequestKey ofTexts() {
        return new RequestKey(parts, onMissing, overrides.ofTexts(), tier, limit, lane, failures, listener);
    }

    /**
     * Returns whether each bucket belongs to one client: the key has its address, user or session. Clients share other
     * buckets, also where requests without a user share a placeholder.
     */
    public boolean isPerClient() {
        boolean hasAccount = false;
        for (int i = 0; i < parts.size(); i++) {
            String name = parts.get(i).name();
            if (name.equals("ip")) {
                return true;
            }
            hasAccount |= name.equals("user") || name.equals("session");
        }
        return hasAccount && onMissing != MissingKey.SHARED;
    }

    /** Returns the name of a request's tier; null for none. */
    public @Nullable String tier(ThrottlePolicy policy, @Nullable RequestFacts request) {
        return tier == null || request == null ? null : tier.tier(request, policy, failures);
    }

    /**
     * Returns the charge of a request. A request that is denied for a missing part has a charge without a key.
     *
     * @param request the facts of the request; null for a call outside a web request, which lacks all parts and the address
     * @return the charge; null if the policy doesn't apply to the request or is off for its key
     */
    public @Nullable Charge charge(ThrottlePolicy policy, long cost, @Nullable RequestFacts request) {
        return charge(policy, cost, request, tier(policy, request));
    }

    /** Returns the charge of a request in a given tier, as {@link #charge(ThrottlePolicy, long, RequestFacts)} does. */
    public @Nullable Charge charge(
            ThrottlePolicy policy, long cost, @Nullable RequestFacts request, @Nullable String tier) {
        if (parts.isEmpty()) {
            Charge charge = charge(policy, GLOBAL, cost, request, tier);
            return lane.isEmpty() || request == null ? charge : guaranteed(charge, request);
        }
        if (parts.size() == 1 && overrides.isEmpty() && request != null) {
            return chargeOnePart(policy, cost, request, tier);
        }
        @Nullable String[] texts = new String[parts.size()];
        if (request != null && resolve(policy, request, texts)) {
            return charge(policy, texts, cost, tier, request);
        }
        return charge(policy, texts, cost, () -> request, tier);
    }

    /** Returns the charge with the share of the request's key; itself if the request lacks a part of it. */
    private Charge guaranteed(Charge charge, RequestFacts request) {
        String[] composed = new String[lane.size()];
        for (int i = 0; i < composed.length; i++) {
            KeyPart part = lane.get(i);
            String text = resolve(part, charge.policy(), request);
            if (text == null || text.isBlank()) {
                listener.eventOccurred(charge.policy(), ThrottleListener.Event.MISSING_KEY);
                return charge;
            }
            composed[i] = part.part(text, charge.policy().ignoreCase(), request);
        }
        return charge.guaranteedTo(Keys.join(composed));
    }

    private @Nullable Charge chargeOnePart(
            ThrottlePolicy policy, long cost, RequestFacts request, @Nullable String tier) {
        KeyPart part = parts.get(0);
        String text = resolve(part, policy, request);
        return text == null || text.isBlank()
                ? charge(policy, new String[1], cost, () -> request, tier)
                : charge(policy, part.part(text, policy.ignoreCase(), request), cost, request, tier);
    }

    /**
     * @param texts receives the composed parts, or if one is missing, the texts
     * @return false if a part is missing
     */
    private boolean resolve(ThrottlePolicy policy, RequestFacts request, @Nullable String[] texts) {
        for (int i = 0; i < texts.length; i++) {
            texts[i] = resolve(parts.get(i), policy, request);
        }
        if (lacksPart(texts)) {
            return false;
        }
        for (int i = 0; i < texts.length; i++) {
            texts[i] = parts.get(i).part(texts[i], policy.ignoreCase(), request);
        }
        return true;
    }

    /**
     * Returns the charge of a key with given texts.
     *
     * @param texts the texts of the parts; null and blank ones are missing
     * @param current supplies the address that becomes the placeholder of a missing part, and the facts of a limit
     * @return the charge, without a key if it is denied for a missing part; null if the policy doesn't apply or is off
     */
    public @Nullable Charge charge(
            ThrottlePolicy policy, @Nullable String[] texts, long cost, Current current, @Nullable String tier) {
        if (lacksPart(texts)) {
            listener.eventOccurred(policy, ThrottleListener.Event.MISSING_KEY);
            if (onMissing == MissingKey.SKIP || onMissing == MissingKey.DENY) {
                return onMissing == MissingKey.DENY ? Charge.withoutKey(policy, cost) : null;
            }
        }
        String[] composed = new String[texts.length];
        for (int i = 0; i < texts.length; i++) {
            String text = texts[i];
            composed[i] = text == null || text.isBlank() ? placeholder(current) : Keys.part(text, policy.ignoreCase());
        }
        return charge(policy, composed, cost, tier, limit == null ? null : current.facts());
    }

    private static boolean lacksPart(@Nullable String[] texts) {
        for (String text : texts) {
            if (text == null || text.isBlank()) {
                return true;
            }
        }
        return false;
    }

    private String placeholder(Current current) {
        RequestFacts request = onMissing == MissingKey.CLIENT_IP ? current.facts() : null;
        return Keys.placeholder(request == null ? "" : request.ip());
    }

    private @Nullable Charge charge(
            ThrottlePolicy policy,
            String[] composed,
            long cost,
            @Nullable String tier,
            @Nullable RequestFacts request) {
        String key = Keys.join(composed);
        boolean mayMatch = composed.length == parts.size() && !overrides.isEmpty();
        OverrideTable.Rule override = mayMatch ? overrides.find(key, composed) : null;
        if (override == null) {
            return charge(policy, key, cost, request, tier);
        }
        Charge charge = override.charge(policy, key, cost);
        if (charge == null) {
            listener.eventOccurred(policy, ThrottleListener.Event.EXEMPT);
        }
        return charge;
    }

    /** Returns the charge of a key without an override, under the request's own limit if it has one. */
    private Charge charge(
            ThrottlePolicy policy, String key, long cost, @Nullable RequestFacts request, @Nullable String tier) {
        Charge charge = Charge.of(policy, tier, key, cost);
        return limit == null || request == null ? charge : limit.apply(charge, request, failures, listener);
    }

    private @Nullable String resolve(KeyPart part, ThrottlePolicy policy, RequestFacts request) {
        try {
            return part.resolver().resolve(request);
        } catch (Exception | LinkageError | AssertionError | StackOverflowError failure) {
            failures.failed(policy.name(), "the part '" + part.name() + "' of its key, so it was missing", failure);
            return null;
        }
    }

    /** The source of a request's own rate and capacity: a bean. Thread-safe. */
    public static final class RequestLimit {

        private static final String BEAN = "bean:";
        private static final String FACT = "its limit, so the policy's own applied";

        private final String bean;
        private final LimitResolver resolver;
        private final long minCapacity;

        private RequestLimit(String bean, LimitResolver resolver, long minCapacity) {
            this.bean = bean;
            this.resolver = resolver;
            this.minCapacity = minCapacity;
        }

        /**
         * Parses {@code bean:NAME}. The source fails until it {@linkplain #withBean has its bean}.
         *
         * @throws IllegalArgumentException if the text is of another form
         */
        public static RequestLimit of(String text) {
            String name = text.startsWith(BEAN) ? text.substring(BEAN.length()) : "";
            if (name.isBlank()) {
                throw new IllegalArgumentException(
                        "'" + text + "' can't give a limit: write 'bean:NAME' with the name of a"
                                + " bean of the type io.ratelimit.key.LimitResolver");
            }
            return new RequestLimit(
                    name,
                    request -> {
                        throw new IllegalStateException("'" + text + "' has not been resolved");
                    },
                    1);
        }

        /**
         * Returns this source with its bean.
         *
         * @param minCapacity the least cost of the policy; a limit with a smaller capacity counts as failed
         */
        public RequestLimit withBean(Function<String, LimitResolver> beans, long minCapacity) {
            return new RequestLimit(bean, beans.apply(bean), minCapacity);
        }

        /** Returns the charge under the limit of a request; the charge itself if the policy's applies. */
        Charge apply(Charge charge, RequestFacts request, FailureListener failures, ThrottleListener listener) {
            ThrottlePolicy policy = charge.policy();
            try {
                BucketSpec own = resolver.limit(request);
                if (own == null) {
                    return charge;
                }
                String reason = refusal(policy.spec(), own);
                if (reason == null) {
                    BucketSpec spec = underRefillOf(policy.spec(), own.orElse(policy.spec()));
                    // A call that waits for a slot of the policy follows the policy's changes.
                    boolean hasSlotsOfPolicy = spec.inFlight() != own.inFlight();
                    ThrottlePolicy charged = hasSlotsOfPolicy ? policy.withSpec(spec) : policy;
                    return new Charge(charged, spec, charge.key(), charge.cost());
                }
                failures.failed(policy.name(), FACT, reason);
            } catch (Exception | LinkageError | AssertionError | StackOverflowError failure) {
                failures.failed(policy.name(), FACT, failure);
            }
            listener.eventOccurred(policy, ThrottleListener.Event.LIMIT_FAILURE);
            return charge;
        }

        /** Returns why a limit can't hold for a request; null if it can. */
        private @Nullable String refusal(BucketSpec policy, BucketSpec spec) {
            if (spec.inFlight() > 0 && policy.inFlight() == 0) {
                return "it limits the requests in flight, but the policy has no in-flight";
            } else if (spec.capacity() < minCapacity) {
                return "its capacity is below the cost of a request";
            }
            boolean otherPeriod =
                    !policy.rate().period().equals(spec.orElse(policy).rate().period());
            return otherPeriod && policy.refill() == Refill.CALENDAR
                    ? "its period isn't that of the policy's calendar"
                    : null;
        }

        private static BucketSpec underRefillOf(BucketSpec policy, BucketSpec spec) {
            if (spec.refill() == policy.refill() && spec.zone().equals(policy.zone())) {
                return spec;
            }
            BucketSpec refilled = policy.with(spec.rate(), spec.capacity());
            return spec.inFlight() == 0 ? refilled : refilled.withInFlight(spec.inFlight());
        }

        @Override
        public String toString() {
            return BEAN + bean;
        }
    }
}
