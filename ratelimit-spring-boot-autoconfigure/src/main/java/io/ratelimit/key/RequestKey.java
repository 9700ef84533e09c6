package io.ratelimit.key;

import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.ThrottleEvent;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The key of a policy: which bucket a request asks. Immutable. */
public final class RequestKey {

    private static final String GLOBAL = "";

    private final List<KeyPart> parts;
    private final MissingKey onMissing;
    private final Overrides overrides;
    private final FailureListener failures;
    private final ThrottleListener listener;
    private final @Nullable RequestTier tier;

    /**
     * @param parts of the key, in order; none for a global policy
     * @param onMissing what holds for a request that lacks a part
     * @param failures is told of a part whose resolver throws, which is then as one that is missing
     * @param listener is told of requests that lack a part
     */
    public RequestKey(List<KeyPart> parts, MissingKey onMissing, FailureListener failures, ThrottleListener listener) {
        this(parts, onMissing, Overrides.NONE, null, failures, listener);
    }

    /**
     * @param parts of the key, in order; none for a global policy
     * @param onMissing what holds for a request that lacks a part
     * @param overrides for which keys something else holds, whatever their tier
     * @param tier which of the policy's tiers a request belongs to, if it has any
     * @param failures is told of a part or a tier whose resolver throws, which is then as one that is missing
     * @param listener is told of requests that lack a part, and of those that an override frees
     */
    public RequestKey(
            List<KeyPart> parts,
            MissingKey onMissing,
            Overrides overrides,
            @Nullable RequestTier tier,
            FailureListener failures,
            ThrottleListener listener) {
        this.parts = List.copyOf(parts);
        this.onMissing = onMissing;
        this.overrides = overrides;
        this.tier = tier;
        this.failures = failures;
        this.listener = listener;
    }

    public List<KeyPart> parts() {
        return parts;
    }

    public Overrides overrides() {
        return overrides;
    }

    public MissingKey onMissing() {
        return onMissing;
    }

    /** Which tier a request belongs to, if there are any. */
    public @Nullable RequestTier tier() {
        return tier;
    }

    /** The tier that a request belongs to, by its name; null for none. */
    public @Nullable String tier(ThrottlePolicy policy, @Nullable RequestFacts request) {
        return tier == null || request == null ? null : tier.tier(request, policy, failures);
    }

    /**
     * What the policy charges a request: without a key if the request lacks a part of it and is to be denied for that;
     * null if the policy then doesn't apply, or is off for the key.
     *
     * @param request null for a call outside a web request, which lacks all parts and has no address either
     */
    public @Nullable Charge charge(ThrottlePolicy policy, long cost, @Nullable RequestFacts request) {
        return charge(policy, cost, request, tier(policy, request));
    }

    /** What the policy charges a request that belongs to this tier, if to any. */
    public @Nullable Charge charge(
            ThrottlePolicy policy, long cost, @Nullable RequestFacts request, @Nullable String tier) {
        if (parts.isEmpty()) {
            return Charge.of(policy, tier, GLOBAL, cost);
        }
        @Nullable String[] texts = new String[parts.size()];
        for (int i = 0; i < texts.length && request != null; i++) {
            texts[i] = resolve(parts.get(i), policy, request);
        }
        return charge(policy, texts, cost, () -> request, tier);
    }

    /**
     * What the policy charges a key of these texts, of which null and blank ones are missing; null if it doesn't apply
     * then, or is off for the key.
     *
     * @param current asked for the address that stands in for a missing part
     */
    public @Nullable Charge charge(
            ThrottlePolicy policy, @Nullable String[] texts, long cost, CurrentRequest current, @Nullable String tier) {
        if (lacksPart(texts)) {
            listener.happened(policy, ThrottleEvent.MISSING_KEY);
            if (onMissing == MissingKey.SKIP || onMissing == MissingKey.DENY) {
                return onMissing == MissingKey.DENY ? Charge.withoutKey(policy, cost) : null;
            }
        }
        String[] composed = new String[texts.length];
        for (int i = 0; i < texts.length; i++) {
            String text = texts[i];
            composed[i] = text == null || text.isBlank() ? standIn(current) : Keys.part(text, policy.ignoreCase());
        }
        return charge(policy, composed, cost, tier);
    }

    private static boolean lacksPart(@Nullable String[] texts) {
        for (String text : texts) {
            if (text == null || text.isBlank()) {
                return true;
            }
        }
        return false;
    }

    private String standIn(CurrentRequest current) {
        RequestFacts request = onMissing == MissingKey.CLIENT_IP ? current.facts() : null;
        return Keys.standIn(request == null ? "" : request.ip());
    }

    private @Nullable Charge charge(ThrottlePolicy policy, String[] composed, long cost, @Nullable String tier) {
        String key = Keys.join(composed);
        boolean asWritten = composed.length == parts.size() && !overrides.isEmpty();
        KeyOverride override = asWritten ? overrides.find(key, composed) : null;
        return override == null ? Charge.of(policy, tier, key, cost) : charge(policy, key, cost, override);
    }

    private @Nullable Charge charge(ThrottlePolicy policy, String key, long cost, KeyOverride override) {
        Charge charge = override.charge(policy, key, cost);
        if (charge == null) {
            listener.happened(policy, ThrottleEvent.EXEMPT);
        }
        return charge;
    }

    private @Nullable String resolve(KeyPart part, ThrottlePolicy policy, RequestFacts request) {
        try {
            return part.resolver().resolve(request);
        } catch (Exception failure) {
            failures.failed(policy.name(), "the part '" + part.name() + "' of its key, so it was missing", failure);
            return null;
        }
    }
}
