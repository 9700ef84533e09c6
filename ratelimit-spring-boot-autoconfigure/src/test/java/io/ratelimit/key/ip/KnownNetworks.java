package io.ratelimit.key.ip;

import static java.util.Objects.requireNonNull;

/** Compares networks and addresses, which only this package can, for tests of other packages. */
public final class KnownNetworks {

    private KnownNetworks() {}

    public static boolean contains(IpNetwork network, String address) {
        return network.contains(requireNonNull(IpAddress.of(address)));
    }
}
