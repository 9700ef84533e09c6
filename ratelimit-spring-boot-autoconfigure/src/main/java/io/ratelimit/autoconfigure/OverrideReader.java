package io.ratelimit.autoconfigure;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.autoconfigure.PolicyOverride.Text;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.KeyOverride;
import io.ratelimit.key.OverriddenKey;
import io.ratelimit.key.OverrideKeys;
import io.ratelimit.key.Overrides;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** Reads the overrides of one policy. */
public final class OverrideReader {

    private final Policy properties;
    private final ThrottlePolicy policy;
    private final OverrideKeys keys;
    private final String property;
    private final Map<OverriddenKey, KeyOverride> overrides = new HashMap<>();
    private final Map<OverriddenKey, String> places = new HashMap<>();

    /**
     * @param ipv6Prefix the bits of an IPv6 address that count
     */
    public OverrideReader(Policy properties, ThrottlePolicy policy, int ipv6Prefix) {
        this.properties = properties;
        this.policy = policy;
        this.keys = new OverrideKeys(properties.key(), policy.ignoreCase(), ipv6Prefix);
        this.property = RateLimitProperties.property(policy.name()) + ".overrides";
    }

    /** The overrides as keys are looked up in them. */
    public Overrides read() {
        List<PolicyOverride> written = properties.overrides();
        if (!written.isEmpty() && policy.isGlobal()) {
            throw new RateLimitConfigurationException(
                    "The throttle policy '" + policy.name() + "' has overrides but no key: it has one bucket for all.",
                    "Say whose limit differs, as in '" + RateLimitProperties.property(policy.name())
                            + ".key: ip', or remove the overrides.",
                    property);
        }
        for (int i = 0; i < written.size(); i++) {
            read(written.get(i), i);
        }
        return overrides.isEmpty() ? Overrides.NONE : new Overrides(overrides, properties.key());
    }

    private void read(PolicyOverride override, int index) {
        String at = property + "[" + index + "]";
        checkChoice(override, at);
        if (override.keys().isEmpty()) {
            throw incomplete("An override names no keys.", "Say '" + at + ".keys', a list.", at);
        }
        for (int i = 0; i < override.keys().size(); i++) {
            List<String> texts = override.keys().get(i).stream().map(Text::text).toList();
            String place = at + ".keys[" + i + "]";
            OverriddenKey key = key(texts, place);
            String twin = places.put(key, place);
            if (twin != null) {
                throw new InvalidConfigurationPropertyValueException(
                        place, shown(texts), "It is the same key as '" + twin + "': name each key once.");
            }
            overrides.put(key, toOverride(override, key, at, index));
        }
    }

    private static void checkChoice(PolicyOverride override, String at) {
        boolean rate = override.rate() != null;
        boolean mode = override.mode() != null && override.mode() != Mode.ENFORCE;
        if (!rate && !mode) {
            throw incomplete(
                    override.capacity() == null
                            ? "An override says nothing that differs from the policy."
                            : "An override has a capacity but no rate.",
                    "Say '" + at + ".rate: 100/1m' for another limit, or '" + at + ".mode: off' for none.",
                    at);
        }
        if (override.mode() != null && (rate || override.capacity() != null)) {
            throw incomplete(
                    "An override has both a mode and a limit.",
                    "Say either '" + at + ".rate', and perhaps a capacity, or '" + at + ".mode'.",
                    at);
        }
    }

    private static RateLimitConfigurationException incomplete(String description, String action, String at) {
        return new RateLimitConfigurationException(description, action, at);
    }

    private OverriddenKey key(List<String> texts, String place) {
        try {
            return keys.read(texts);
        } catch (IllegalArgumentException unreadable) {
            throw new InvalidConfigurationPropertyValueException(
                    place, shown(texts), unreadable.getMessage(), unreadable);
        }
    }

    private static String shown(List<String> texts) {
        return String.join(", ", texts);
    }

    private KeyOverride toOverride(PolicyOverride override, OverriddenKey key, String at, int index) {
        Rate rate = override.rate();
        @Nullable
        BucketSpec spec =
                rate == null ? null : PolicyCosts.spec(rate, override.capacity(), properties, at, "these keys");
        KeyOverride own = key.network() == null
                ? KeyOverride.ofKeys(spec)
                : KeyOverride.ofNetworks(spec, Integer.toString(index));
        return override.mode() == null ? own : own.withMode(override.mode());
    }
}
