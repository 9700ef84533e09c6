package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/**
 * A key that has an override, or those with an address in a network.
 *
 * @param network where the address is; null for one key
 * @param key as it is composed; with a network, as it would be without the address
 */
public record OverriddenKey(@Nullable IpNetwork network, String key) {}
