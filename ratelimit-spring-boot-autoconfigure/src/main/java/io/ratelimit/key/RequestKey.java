package io.ratelimit.key;

import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The key of a policy: which bucket a request asks. Immutable. */
public final class RequestKey {

    private static final String GLOBAL = "";

    private final List<KeyPart> parts;
    private final MissingKey onMissing;

    /**
     * @param parts of the key, in order; none for a global policy
     * @param onMissing what holds for a request that lacks a part
     */
    public RequestKey(List<KeyPart> parts, MissingKey onMissing) {
        this.parts = List.copyOf(parts);
        this.onMissing = onMissing;
    }

    public List<KeyPart> parts() {
        return parts;
    }

    /**
     * What the policy charges a request: without a key if the request lacks a part of it and is to be denied for that;
     * null if the policy then doesn't apply.
     */
    public @Nullable Charge charge(ThrottlePolicy policy, long cost, RequestFacts request) {
        if (parts.isEmpty()) {
            return Charge.of(policy, GLOBAL, cost);
        }
        String[] texts = new String[parts.size()];
        for (int i = 0; i < texts.length; i++) {
            String text = parts.get(i).resolver().resolve(request);
            if (text != null && !text.isBlank()) {
                texts[i] = Keys.part(text, policy.ignoreCase());
            } else if (onMissing == MissingKey.SKIP) {
                return null;
            } else if (onMissing == MissingKey.DENY) {
                return Charge.withoutKey(policy, cost);
            } else {
                texts[i] = Keys.standIn(onMissing == MissingKey.CLIENT_IP ? request.ip() : "");
            }
        }
        return Charge.of(policy, Keys.join(texts), cost);
    }
}
