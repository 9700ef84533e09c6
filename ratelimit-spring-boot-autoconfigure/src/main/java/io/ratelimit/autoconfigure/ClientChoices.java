package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestKey;
import org.apache.commons.logging.Log;

/**
 * Warns of what clients may choose themselves of that by which a policy counts them.
 *
 * @param key of the policy
 */
public record ClientChoices(ThrottlePolicy policy, RequestKey key) {

    /** Where the whole key is chosen by clients. */
    public void warnOfKey(Log logger) {
        if (!policy.isGlobal() && key.parts().stream().allMatch(KeyPart::chosenByClient)) {
            logger.warn("Throttle policy '" + policy.name() + "' is keyed only by what clients choose ("
                    + String.join(" and ", policy.key())
                    + "): whoever changes it gets a fresh bucket. Add 'ip' or 'user' to the key, or limit by another policy"
                    + " as well");
        }
    }

    /** Where the tier is. */
    public void warnOfTier(Log logger) {
        if (key.tier() != null && key.tier().chosenByClient()) {
            logger.warn("Clients choose their tier of the throttle policy '" + policy.name() + "' (" + key.tier()
                    + "). Say 'role', or have 'bean:NAME' or 'expression:SPEL' decide by what they can't choose");
        }
    }
}
