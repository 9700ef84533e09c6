package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.key.ip.ClientIp;
import io.ratelimit.key.ip.IpNetwork;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The overrides of one policy, found by key. A single key takes precedence over a network, and a smaller network over a
 * larger one. A look-up costs one map access for the key, and one more for each distinct prefix length. Thread-safe.
 */
public final class OverrideTable {

    public static final OverrideTable NONE = new OverrideTable(List.of(), List.of());

    private final Map<String, Rule> keys;
    private final Map<Match, Rule> networks;
    private final int[] prefixes;
    private final int ipIndex;

    /** @param rules the overrides; each matches other keys */
    public OverrideTable(List<KeyPart> parts, Collection<Rule> rules) {
        Map<String, Rule> keys = new HashMap<>();
        Map<Match, Rule> networks = new HashMap<>();
        Set<Integer> prefixes = new TreeSet<>(Comparator.reverseOrder());
        for (Rule rule : rules) {
            IpNetwork network = rule.match.network();
            if (network == null) {
                keys.put(rule.match.key(), rule);
            } else {
                networks.put(rule.match, rule);
                prefixes.add(network.prefix());
            }
        }
        this.keys = Map.copyOf(keys);
        this.networks = Map.copyOf(networks);
        this.prefixes = prefixes.stream().mapToInt(Integer::intValue).toArray();
        this.ipIndex = KeyPart.names(parts).indexOf("ip");
    }

    /** Returns the overrides of keys without an address; none if the policy's key has one. */
    OverrideTable ofTexts() {
        return ipIndex >= 0 ? NONE : this;
    }

    public boolean isEmpty() {
        return keys.isEmpty() && networks.isEmpty();
    }

    /** Returns the number of keys and networks that have an override. */
    public int size() {
        return keys.size() + networks.size();
    }

    /** Returns the limits of the overrides that have one of their own and aren't off, without the part that is the policy's. */
    public Stream<BucketSpec> specs() {
        return Stream.concat(keys.values().stream(), networks.values().stream())
                .filter(rule -> rule.mode != Mode.OFF)
                .flatMap(rule -> Stream.ofNullable(rule.spec));
    }

    /** Returns whether a policy, one of its tiers or one of these overrides limits how many calls are in flight. */
    public boolean limitInFlight(ThrottlePolicy policy) {
        return policy.limitsInFlight() || specs().anyMatch(spec -> spec.inFlight() > 0);
    }

    /** Returns the override of a key; null if it has none. */
    @Nullable
    Rule find(String key, String[] parts) {
        Rule rule = keys.get(key);
        return rule != null || networks.isEmpty() ? rule : findNetwork(parts);
    }

    private @Nullable Rule findNetwork(String[] parts) {
        IpNetwork address = ClientIp.addressOf(parts[ipIndex]);
        if (address == null) {
            return null;
        }
        String key = withoutAddress(parts);
        for (int prefix : prefixes) {
            IpNetwork network = address.widened(prefix);
            Rule rule = network == null ? null : networks.get(new Match(network, key));
            if (rule != null) {
                return rule;
            }
        }
        return null;
    }

    private String withoutAddress(String[] parts) {
        String[] others = parts.clone();
        others[ipIndex] = "";
        return Keys.join(others);
    }

    /**
     * The keys to which an override applies: one key, or all keys whose address is in a network.
     *
     * @param network the network of the address; null for one key
     * @param key the composed key; with a network, the key composed with an empty text for the address
     */
    public record Match(@Nullable IpNetwork network, String key) {}

    /**
     * One override: the limit or the mode of the keys that it matches. A single key has a bucket of its own and never
     * shares an overflow bucket. The number of addresses in a network is unbounded, so their buckets are those of a
     * tier, which has its own overflow buckets. Thread-safe.
     */
    public static final class Rule {

        private final Match match;
        private final @Nullable String tier;
        private final @Nullable BucketSpec spec;
        private final Mode mode;
        private volatile @Nullable Applied applied;

        /**
         * @param name the name of the override, unique among the overrides of the policy; rules may share it
         * @param spec the rate, the calls in flight, or both, also after a change of the policy, which has the rest; null for the
         *     policy's own spec
         * @param mode the mode; the weaker of this and the policy's own mode counts
         */
        public Rule(Match match, String name, @Nullable BucketSpec spec, Mode mode) {
            this.match = match;
            this.tier = match.network() == null ? null : "\0" + name;
            this.spec = spec;
            this.mode = mode;
        }

        /** Returns the charge for a key of the policy; null if the policy is off for the key. */
        @Nullable
        Charge charge(ThrottlePolicy policy, String key, long cost) {
            Applied current = applied;
            if (current == null || current.base != policy) {
                current = applyTo(policy);
                applied = current;
            }
            if (current.policy.mode() == Mode.OFF) {
                return null;
            }
            return tier != null
                    ? Charge.of(current.policy, tier, key, cost)
                    : new Charge(current.policy, current.spec, Keys.reserved(key), cost);
        }

        private Applied applyTo(ThrottlePolicy base) {
            BucketSpec spec = this.spec == null ? base.spec() : this.spec.orElse(base.spec());
            ThrottlePolicy policy = base.withMode(mode.weaker(base.mode()));
            if (this.spec != null && this.spec.inFlight() != spec.inFlight()) {
                policy = policy.withSpec(spec); // a call that waits for a slot then follows changes of the policy
            }
            return new Applied(base, tier == null ? policy : policy.withTiers(Map.of(tier, spec)), spec);
        }

        /** @param base the policy without the override; a changed policy is another instance */
        private record Applied(ThrottlePolicy base, ThrottlePolicy policy, BucketSpec spec) {}
    }
}
