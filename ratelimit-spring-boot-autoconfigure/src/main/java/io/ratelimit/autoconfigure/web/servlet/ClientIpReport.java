package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.autoconfigure.RateLimitProperties.ClientAddress;
import io.ratelimit.key.ip.IpNetwork;
import io.ratelimit.web.servlet.RequestPolicies;
import java.util.Locale;
import java.util.stream.Collectors;
import org.apache.commons.logging.Log;
import org.springframework.boot.cloud.CloudPlatform;
import org.springframework.core.env.Environment;

/** The lines about the proxies that may name a client's address, and the warnings about mistakes in trusting them. */
record ClientIpReport(RequestPolicies policies, ClientAddress clientIp, Environment environment) {

    private static final Log logger = StartupReport.logger;

    void log() {
        String strategy = strategy();
        if (!clientIp.trustedProxies().isEmpty()) {
            reportProxies();
            warnOfTwoReaders(strategy);
        }
        boolean usesAddress =
                policies.all().stream().anyMatch(policy -> policy.policy().key().contains("ip"));
        if (strategy.equals("framework") && usesAddress) {
            logger.warn(
                    "'server.forward-headers-strategy' is 'framework', which trusts X-Forwarded-For from every peer:"
                            + " clients can choose the address that throttle policies use as key. Set it to 'native', or"
                            + " have your proxy remove the header that clients send");
        }
    }

    private void reportProxies() {
        logger.info("A client's address is read from '" + clientIp.header() + "' where the peer is in "
                + clientIp.trustedProxies().stream().map(IpNetwork::toString).collect(Collectors.joining(", ")));
        clientIp.trustedProxies().stream()
                .filter(IpNetwork::isEverything)
                .forEach(network -> logger.warn("'ratelimit.client-ip.trusted-proxies' has '" + network
                        + "', which trusts '" + clientIp.header()
                        + "' from every peer: clients can choose the address that throttle policies use as key. Set the"
                        + " network of your proxies"));
    }

    private void warnOfTwoReaders(String strategy) {
        if (!strategy.equals("none")) {
            logger.warn("'ratelimit.client-ip.trusted-proxies' is set, but with 'server.forward-headers-strategy: "
                    + strategy + "' " + (strategy.equals("native") ? "the server" : "Spring")
                    + " reads forwarding headers first, by its own rules of trust, and trusted-proxies is compared with"
                    + " the client's address. Set 'server.forward-headers-strategy: none', or remove trusted-proxies");
        }
    }

    /** Returns the strategy as written, or else "native" on a cloud platform whose headers Spring Boot trusts. */
    private String strategy() {
        String written =
                environment.getProperty("server.forward-headers-strategy", "").toLowerCase(Locale.ROOT);
        CloudPlatform platform = written.isBlank() ? CloudPlatform.getActive(environment) : null;
        return !written.isBlank() ? written : platform != null && platform.isUsingForwardHeaders() ? "native" : "none";
    }
}
