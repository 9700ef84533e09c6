package io.ratelimit.key;

import io.ratelimit.Keys;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The keys of a policy for which something else holds: single keys, and networks of addresses. A key goes before a
 * network, a smaller network before one around it. Finds a key with one look-up, and a network with one more for each
 * length of prefix that there is. Immutable.
 */
public final class Overrides {

    /** None. */
    public static final Overrides NONE = new Overrides(Map.of(), List.of());

    private final Map<String, KeyOverride> keys;
    private final Map<OverriddenKey, KeyOverride> networks;
    private final int[] prefixes;
    private final int ip;

    /**
     * @param overrides by the keys that have them
     * @param parts of the policy's key
     */
    public Overrides(Map<OverriddenKey, KeyOverride> overrides, List<KeyPart> parts) {
        Map<String, KeyOverride> keys = new HashMap<>();
        Map<OverriddenKey, KeyOverride> networks = new HashMap<>();
        Set<Integer> prefixes = new TreeSet<>(Comparator.reverseOrder());
        for (Map.Entry<OverriddenKey, KeyOverride> override : overrides.entrySet()) {
            OverriddenKey key = override.getKey();
            IpNetwork network = key.network();
            if (network == null) {
                keys.put(key.key(), override.getValue());
            } else {
                networks.put(key, override.getValue());
                prefixes.add(network.prefix());
            }
        }
        this.keys = Map.copyOf(keys);
        this.networks = Map.copyOf(networks);
        this.prefixes = new int[prefixes.size()];
        int i = 0;
        for (int prefix : prefixes) {
            this.prefixes[i++] = prefix;
        }
        this.ip = KeyPart.names(parts).indexOf("ip");
    }

    public boolean isEmpty() {
        return keys.isEmpty() && networks.isEmpty();
    }

    /** How many keys and networks there are. */
    public int size() {
        return keys.size() + networks.size();
    }

    /**
     * What holds for a key, or null if it is what holds for the others.
     *
     * @param key composed of the parts
     * @param parts of the key
     */
    @Nullable
    KeyOverride find(String key, String[] parts) {
        KeyOverride found = keys.get(key);
        return found != null || networks.isEmpty() ? found : inNetwork(parts);
    }

    private @Nullable KeyOverride inNetwork(String[] parts) {
        IpAddress address = addressOf(parts[ip]);
        if (address == null) {
            return null;
        }
        String others = withoutPart(ip, parts);
        for (int prefix : prefixes) {
            if (!address.isIpv4() || prefix >= IpAddress.MAPPED_PREFIX) {
                KeyOverride found = networks.get(new OverriddenKey(IpNetwork.around(address, prefix), others));
                if (found != null) {
                    return found;
                }
            }
        }
        return null;
    }

    /** The address, or the first of the network, that a client's address is as a key. */
    private static @Nullable IpAddress addressOf(String ip) {
        int slash = ip.indexOf('/');
        return IpReader.read(ip, 0, slash < 0 ? ip.length() : slash);
    }

    /** The key of the parts but one. */
    static String withoutPart(int index, String[] parts) {
        String[] others = parts.clone();
        others[index] = "";
        return Keys.join(others);
    }
}
