package io.ratelimit.key;

import io.ratelimit.Keys;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The key of a policy: which bucket a request asks. Immutable. */
public final class RequestKey {

    /** The request lacks a part, and is to be refused for that. */
    public static final String DENIED = new String("denied");

    private static final String GLOBAL = "";

    private final List<KeyPart> parts;
    private final boolean ignoreCase;
    private final MissingKey onMissing;

    /**
     * @param parts of the key, in order; none for a global policy
     * @param ignoreCase whether keys that differ in case alone are one
     * @param onMissing what holds for a request that lacks a part
     */
    public RequestKey(List<KeyPart> parts, boolean ignoreCase, MissingKey onMissing) {
        this.parts = List.copyOf(parts);
        this.ignoreCase = ignoreCase;
        this.onMissing = onMissing;
    }

    public List<KeyPart> parts() {
        return parts;
    }

    /** The key for a request; {@link #DENIED} to refuse it, null if the policy doesn't apply. */
    public @Nullable String resolve(RequestFacts request) {
        if (parts.isEmpty()) {
            return GLOBAL;
        }
        String[] texts = new String[parts.size()];
        for (int i = 0; i < texts.length; i++) {
            String text = parts.get(i).resolver().resolve(request);
            if (text != null && !text.isBlank()) {
                texts[i] = Keys.part(text, ignoreCase);
            } else if (onMissing == MissingKey.SKIP) {
                return null;
            } else if (onMissing == MissingKey.DENY) {
                return DENIED;
            } else {
                texts[i] = Keys.standIn(onMissing == MissingKey.CLIENT_IP ? request.ip() : "");
            }
        }
        return Keys.join(texts);
    }
}
