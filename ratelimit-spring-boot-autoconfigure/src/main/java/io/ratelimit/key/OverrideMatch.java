package io.ratelimit.key;

import io.ratelimit.key.ip.IpNetwork;
import org.jspecify.annotations.Nullable;

/**
 * The keys to which an override applies: one key, or all keys whose address is in a network.
 *
 * @param network the network of the address; null for one key
 * @param key the composed key; with a network, the key composed with an empty text for the address
 */
public record OverrideMatch(@Nullable IpNetwork network, String key) {}
