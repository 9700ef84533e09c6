package io.ratelimit.key;

import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Which tier of a policy a request belongs to: by a role of the user, or as a part of a key would say. Thread-safe. */
public final class RequestTier {

    private static final String ROLE = "role";
    private static final KeyPart BY_ROLE = new KeyPart(ROLE, request -> null, Known.WITH_USER, false);

    private final KeyPart part;
    private final @Nullable RoleTiers roles;

    private RequestTier(KeyPart part) {
        this.part = part;
        this.roles = part == BY_ROLE ? new RoleTiers() : null;
    }

    /**
     * Reads {@code role}, or what is also a part of a key. One that names a bean can't be resolved before it
     * {@linkplain #withBean has it}.
     *
     * @throws IllegalArgumentException if it is neither
     */
    public static RequestTier of(String text) {
        try {
            return new RequestTier(text.equals(ROLE) ? BY_ROLE : KeyPart.of(text));
        } catch (IllegalArgumentException unreadable) {
            if (text.indexOf(':') >= 0) {
                throw unreadable;
            }
            throw new IllegalArgumentException(
                    "'" + text + "' is not what a tier can be told by: say role, or a part of a key, such as"
                            + " header:NAME, bean:NAME or expression:SPEL");
        }
    }

    /** The same with the bean that it names, if it names one. */
    public RequestTier withBean(Function<String, KeyResolver> beans) {
        return new RequestTier(roles == null ? part.withBean(beans) : part);
    }

    /** From when on it can be told. */
    public Known known() {
        return part.known();
    }

    /** Whether clients can choose it. */
    public boolean chosenByClient() {
        return part.chosenByClient();
    }

    /** The name of the tier; null, or a name that the policy doesn't have, for none. */
    @Nullable
    String tier(RequestFacts request, ThrottlePolicy policy, FailureListener failures) {
        try {
            String text = roles == null ? part.resolver().resolve(request) : roles.of(request.roles(), policy.tiers());
            return text == null ? null : Keys.part(text, true);
        } catch (Exception failure) {
            failures.failed(policy.name(), "its tier, so its own rate held", failure);
            return null;
        }
    }

    /** As it is written. */
    @Override
    public String toString() {
        return part.name();
    }
}
