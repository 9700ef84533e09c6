package io.ratelimit.policy;

import io.ratelimit.key.KeyPart;
import io.ratelimit.key.OverrideTable.Match;
import java.util.List;

/** Reads the keys of overrides for tests of other packages. */
public final class OverrideKeys {

    private OverrideKeys() {}

    public static Match parse(List<KeyPart> parts, int ipv6Prefix, String... key) {
        return new KeyTexts(parts, true, ipv6Prefix).parseOverride(List.of(key));
    }
}
