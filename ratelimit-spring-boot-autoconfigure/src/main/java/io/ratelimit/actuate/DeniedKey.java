package io.ratelimit.actuate;

/**
 * A key that a policy denies often.
 *
 * @param key as {@link io.ratelimit.Keys} composes it, a long one cut: it may come from a client, so it is shown only
 *     where the configuration says so
 * @param hash that stands for the key elsewhere: the same for the same key until the application ends, and of no use to
 *     whoever wants to guess the key
 * @param denied the denials of the last minutes, at least so many
 * @param shadow whether the policy was in shadow mode for the key, so that none was refused
 */
public record DeniedKey(String key, String hash, long denied, boolean shadow) {}
