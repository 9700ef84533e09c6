package io.ratelimit.policy;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.key.OverrideTable;
import io.ratelimit.key.OverrideTable.Match;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** Reads the overrides of one policy. */
final class OverrideReader {

    private final Policy properties;
    private final ThrottlePolicy policy;
    private final KeyTexts keys;
    private final String property;
    private final List<OverrideTable.Rule> rules = new ArrayList<>();
    private final Map<Match, String> propertiesOfKeys = new HashMap<>();

    OverrideReader(Policy properties, ThrottlePolicy policy, int ipv6Prefix) {
        this.properties = properties;
        this.policy = policy;
        this.keys = new KeyTexts(properties.key(), policy.ignoreCase(), ipv6Prefix);
        this.property = RateLimitProperties.property(policy.name()) + ".overrides";
    }

    OverrideTable read() {
        List<OverrideEntry> entries = properties.overrides();
        if (!entries.isEmpty() && policy.isGlobal()) {
            throw new RateLimitConfigurationException(
                    "The throttle policy '" + policy.name() + "' has overrides but no key, so it has only one bucket.",
                    "Add a key, for example '" + RateLimitProperties.property(policy.name())
                            + ".key: ip', or remove the overrides.",
                    property);
        }
        for (int i = 0; i < entries.size(); i++) {
            read(entries.get(i), i);
        }
        return rules.isEmpty() ? OverrideTable.NONE : new OverrideTable(properties.key(), rules);
    }

    private void read(OverrideEntry entry, int index) {
        String at = property + "[" + index + "]";
        checkChoice(entry, at);
        if (entry.keys().isEmpty()) {
            throw new RateLimitConfigurationException(
                    "An override has no keys.", "Add the list '" + at + ".keys'.", at);
        }
        for (int i = 0; i < entry.keys().size(); i++) {
            List<String> texts = entry.keys().get(i).stream().map(Text::text).toList();
            String keyProperty = at + ".keys[" + i + "]";
            Match key = key(texts, keyProperty);
            String twin = propertiesOfKeys.put(key, keyProperty);
            if (twin != null) {
                String text = String.join(", ", texts);
                throw new InvalidConfigurationPropertyValueException(
                        keyProperty, text, "'" + text + "' is the same key as '" + twin + "'. Write each key once.");
            }
            rules.add(rule(entry, key, at, index));
        }
    }

    private static void checkChoice(OverrideEntry entry, String at) {
        boolean slots = entry.inFlight() != null;
        boolean rate = entry.rate() != null || slots && entry.capacity() == null;
        boolean mode = entry.mode() != null && entry.mode() != Mode.ENFORCE;
        if (!rate && !mode) {
            throw new RateLimitConfigurationException(
                    entry.capacity() == null
                            ? "An override changes nothing of the policy."
                            : "An override has a capacity but no rate.",
                    "Set '" + at + ".rate: 100/1m' for another limit, or '" + at + ".mode: off' for none.",
                    at);
        }
        if (entry.mode() != null && (rate || slots || entry.capacity() != null)) {
            throw new RateLimitConfigurationException(
                    "An override has both a mode and a limit.",
                    "Keep either '" + at + ".rate' with its capacity, or '" + at + ".mode'.",
                    at);
        }
    }

    private Match key(List<String> texts, String keyProperty) {
        try {
            return keys.parseOverride(texts);
        } catch (IllegalArgumentException invalid) {
            throw new InvalidConfigurationPropertyValueException(
                    keyProperty, String.join(", ", texts), invalid.getMessage());
        }
    }

    private OverrideTable.Rule rule(OverrideEntry entry, Match key, String at, int index) {
        boolean changes = entry.rate() != null || entry.inFlight() != null;
        BucketSpec spec = changes
                ? PolicyReader.limit(entry.rate(), entry.capacity(), entry.inFlight(), properties, at, "these keys")
                : null;
        Mode mode = entry.mode() == null ? Mode.ENFORCE : entry.mode();
        return new OverrideTable.Rule(key, Integer.toString(index), spec, mode);
    }
}
