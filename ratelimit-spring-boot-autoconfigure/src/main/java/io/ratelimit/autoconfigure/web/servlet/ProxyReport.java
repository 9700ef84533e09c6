package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.autoconfigure.RateLimitProperties.ClientAddress;
import io.ratelimit.key.IpNetwork;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import java.util.Locale;
import java.util.stream.Collectors;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.cloud.CloudPlatform;
import org.springframework.core.env.Environment;

/** Says in the log, when the application starts, who may name a client's address, and what looks like a mistake there. */
final class ProxyReport implements SmartInitializingSingleton {

    private static final Log logger = LogFactory.getLog(ProxyReport.class);

    private final RequestPolicies policies;
    private final ClientAddress clientIp;
    private final Environment environment;

    ProxyReport(RequestPolicies policies, ClientAddress clientIp, Environment environment) {
        this.policies = policies;
        this.clientIp = clientIp;
        this.environment = environment;
    }

    @Override
    public void afterSingletonsInstantiated() {
        String strategy = strategy();
        if (!clientIp.trustedProxies().isEmpty()) {
            reportProxies();
            warnOfTwoReaders(strategy);
        }
        if (strategy.equals("framework") && policies.all().stream().anyMatch(ProxyReport::countsByIp)) {
            logger.warn(
                    "'server.forward-headers-strategy' is 'framework', which believes X-Forwarded-For of whoever sends"
                            + " it: clients can choose the address that throttle policies count by. Say 'native', or have your"
                            + " proxy remove what clients send");
        }
    }

    private void reportProxies() {
        logger.info("A client's address is taken from '" + clientIp.header() + "' where the peer is in "
                + clientIp.trustedProxies().stream().map(IpNetwork::toString).collect(Collectors.joining(", ")));
        clientIp.trustedProxies().stream()
                .filter(IpNetwork::isEverything)
                .forEach(network -> logger.warn("'ratelimit.client-ip.trusted-proxies' has '" + network
                        + "', which trusts whoever sends '" + clientIp.header()
                        + "': clients can choose the address that throttle policies count by. Say the network of your"
                        + " proxies"));
    }

    private void warnOfTwoReaders(String strategy) {
        if (!strategy.equals("none")) {
            logger.warn("'ratelimit.client-ip.trusted-proxies' is set, but with 'server.forward-headers-strategy: "
                    + strategy + "' " + (strategy.equals("native") ? "the server" : "Spring")
                    + " reads forwarding headers first: whom it believes decides, and the address that is compared with"
                    + " trusted-proxies is the client's. Say 'server.forward-headers-strategy: none', or remove"
                    + " trusted-proxies");
        }
    }

    /** On a cloud platform that Spring Boot knows, it is native where nothing is written. */
    private String strategy() {
        String written =
                environment.getProperty("server.forward-headers-strategy", "").toLowerCase(Locale.ROOT);
        CloudPlatform platform = written.isBlank() ? CloudPlatform.getActive(environment) : null;
        return !written.isBlank() ? written : platform != null && platform.isUsingForwardHeaders() ? "native" : "none";
    }

    private static boolean countsByIp(RequestPolicy policy) {
        return policy.policy().key().contains("ip");
    }
}
