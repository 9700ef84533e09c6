package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.OverrideEntry.Text;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.ip.IpNetwork;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The warnings about overrides that probably apply to no request.
 *
 * @param endpoints the names of the application's endpoints
 */
record OverrideReport(RateLimitProperties properties, Collection<String> endpoints) {

    private static final int MAX_SHOWN = 10;

    void log() {
        properties.policies().forEach(this::report);
    }

    private void report(String name, Policy policy) {
        for (int i = 0; i < policy.overrides().size(); i++) {
            List<List<Text>> keys = policy.overrides().get(i).keys();
            for (int j = 0; j < keys.size(); j++) {
                String property = RateLimitProperties.property(name) + ".overrides[" + i + "].keys[" + j + "]";
                report(property, policy, keys.get(j));
            }
        }
    }

    private void report(String property, Policy policy, List<Text> key) {
        List<String> parts = KeyPart.names(policy.key());
        int endpoint = parts.indexOf("endpoint");
        if (endpoint >= 0) {
            warnOfUnknownEndpoint(property, key.get(endpoint).text(), policy.ignoreCase());
        }
        for (int i = 0; i < parts.size() && !parts.contains("ip"); i++) {
            if (isNetwork(key.get(i).text())) {
                StartupReport.logger.warn(
                        "'" + property + "' has '" + key.get(i).text()
                                + "', which looks like a network but is compared with the text of " + parts.get(i)
                                + ": the policy's key has no ip");
            }
        }
    }

    private static boolean isNetwork(String text) {
        try {
            IpNetwork.of(text);
            return text.indexOf('/') >= 0;
        } catch (IllegalArgumentException notAnAddress) {
            return false;
        }
    }

    private void warnOfUnknownEndpoint(String property, String endpoint, boolean ignoreCase) {
        if (!endpoint.equals("none")
                && endpoints.stream()
                        .noneMatch(name -> ignoreCase ? name.equalsIgnoreCase(endpoint) : name.equals(endpoint))) {
            StartupReport.logger.warn("'" + property + "' names the endpoint '" + endpoint
                    + "', which doesn't exist: the override applies to no request. The endpoints are: "
                    + (endpoints.isEmpty()
                            ? "none"
                            : endpoints.stream().limit(MAX_SHOWN).collect(Collectors.joining("', '", "'", "'")))
                    + (endpoints.size() > MAX_SHOWN ? " and others" : ""));
        }
    }
}
