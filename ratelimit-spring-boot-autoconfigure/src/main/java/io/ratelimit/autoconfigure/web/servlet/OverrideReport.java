package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.autoconfigure.PolicyOverride.Text;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.IpNetwork;
import io.ratelimit.key.KeyPart;
import io.ratelimit.web.servlet.Endpoints;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;

/** Says in the log, when the application starts, which overrides seem to hold for nobody. */
final class OverrideReport implements SmartInitializingSingleton {

    private static final Log logger = LogFactory.getLog(OverrideReport.class);
    private static final int MOST_SHOWN = 10;

    private final RateLimitProperties properties;
    private final Collection<String> endpoints;

    OverrideReport(RateLimitProperties properties, Endpoints endpoints) {
        this.properties = properties;
        this.endpoints = endpoints.names();
    }

    @Override
    public void afterSingletonsInstantiated() {
        properties.policies().forEach(this::report);
    }

    private void report(String name, Policy policy) {
        for (int i = 0; i < policy.overrides().size(); i++) {
            List<List<Text>> keys = policy.overrides().get(i).keys();
            for (int j = 0; j < keys.size(); j++) {
                report(
                        RateLimitProperties.property(name) + ".overrides[" + i + "].keys[" + j + "]",
                        policy,
                        keys.get(j));
            }
        }
    }

    private void report(String property, Policy policy, List<Text> key) {
        List<String> parts = KeyPart.names(policy.key());
        int endpoint = parts.indexOf("endpoint");
        if (endpoint >= 0) {
            reportUnknown(property, key.get(endpoint).text(), policy.ignoreCase());
        }
        for (int i = 0; i < parts.size() && !parts.contains("ip"); i++) {
            if (isNetwork(key.get(i).text())) {
                logger.warn(
                        "'" + property + "' has '" + key.get(i).text() + "', which looks like a network, and is the "
                                + parts.get(i) + " of that text: the policy's key has no ip");
            }
        }
    }

    private static boolean isNetwork(String text) {
        try {
            IpNetwork.of(text);
            return text.indexOf('/') >= 0;
        } catch (IllegalArgumentException other) {
            return false;
        }
    }

    private void reportUnknown(String property, String endpoint, boolean ignoreCase) {
        if (!endpoint.equals("none")
                && endpoints.stream()
                        .noneMatch(known -> ignoreCase ? known.equalsIgnoreCase(endpoint) : known.equals(endpoint))) {
            logger.warn("'" + property + "' names the endpoint '" + endpoint + "', and there is none of that name: the"
                    + " override holds for no request. Endpoints here: "
                    + (endpoints.isEmpty()
                            ? "none"
                            : endpoints.stream().limit(MOST_SHOWN).collect(Collectors.joining("', '", "'", "'")))
                    + (endpoints.size() > MOST_SHOWN ? " and others" : ""));
        }
    }
}
