package io.ratelimit.autoconfigure;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.key.ip.IpNetwork;
import io.ratelimit.policy.RateLimitProperties.ClientAddress;
import io.ratelimit.web.servlet.RequestPolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.cloud.CloudPlatform;
import org.springframework.boot.thread.Threading;
import org.springframework.core.env.Environment;

/** The advice about settings of the server: the proxies in front of it, and its threads. */
record ServerAdvice(BeanFactory beans, Environment environment) {

    /** Returns where the client's address comes from. */
    String address(ClientAddress clientIp) {
        String strategy = strategy();
        String proxies =
                clientIp.trustedProxies().stream().map(IpNetwork::toString).collect(Collectors.joining(", "));
        return proxies.isEmpty()
                ? strategy.equals("none")
                        ? "from the connection"
                        : "by 'server.forward-headers-strategy: " + strategy + "'"
                : "from '" + clientIp.header() + "' of peers in " + proxies;
    }

    /** Returns the advice about proxies that may name a client's address. */
    List<String> onProxies(List<RequestPolicy> policies, ClientAddress clientIp) {
        String strategy = strategy();
        List<String> texts = new ArrayList<>();
        clientIp.trustedProxies().stream()
                .filter(IpNetwork::isEverything)
                .forEach(network -> texts.add("'ratelimit.client-ip.trusted-proxies' has '" + network
                        + "', which trusts '" + clientIp.header()
                        + "' from every peer: clients can choose the address that throttle policies use as key."
                        + " Set the network of your proxies"));
        if (clientIp.trustedProxies().isEmpty()
                && strategy.equals("none")
                && environment.containsProperty("ratelimit.client-ip.header")) {
            texts.add(
                    "'ratelimit.client-ip.header' is set, but not 'ratelimit.client-ip.trusted-proxies': the header is"
                            + " ignored, and all clients of a proxy share one bucket. Set the networks of your proxies");
        }
        if (!clientIp.trustedProxies().isEmpty() && !strategy.equals("none")) {
            texts.add("'ratelimit.client-ip.trusted-proxies' is set, but with 'server.forward-headers-strategy: "
                    + strategy + "' " + (strategy.equals("native") ? "the server" : "Spring")
                    + " reads forwarding headers first, by its own rules of trust, and trusted-proxies is compared"
                    + " with the client's address. Set 'server.forward-headers-strategy: none', or remove"
                    + " trusted-proxies");
        }
        if (strategy.equals("framework")
                && policies.stream().anyMatch(policy -> policy.policy().key().contains("ip"))) {
            texts.add("'server.forward-headers-strategy' is 'framework', which trusts X-Forwarded-For from every peer:"
                    + " clients can choose the address that throttle policies use as key. Set it to 'native', or"
                    + " have your proxy remove the header that clients send");
        }
        return texts;
    }

    /** Returns the strategy as written, or else "native" on a cloud platform whose headers Spring Boot trusts. */
    private String strategy() {
        String written =
                environment.getProperty("server.forward-headers-strategy", "").toLowerCase(Locale.ROOT);
        CloudPlatform platform = written.isBlank() ? CloudPlatform.getActive(environment) : null;
        return !written.isBlank() ? written : platform != null && platform.isUsingForwardHeaders() ? "native" : "none";
    }

    /**
     * Returns the advice if the queues of all policies together may hold as many requests as the servlet container has threads;
     * otherwise null.
     *
     * @param callsMayWait whether annotations let calls wait for tokens of the policy of a name
     */
    @Nullable
    String onQueues(Throttlers throttlers, Predicate<String> callsMayWait) {
        List<ThrottlePolicy> queueing = new ArrayList<>();
        long maxQueued = 0;
        for (PolicyThrottler throttler : throttlers.all()) {
            ThrottlePolicy policy = throttler.policy();
            boolean mayWait = !policy.maxWait().isZero() || callsMayWait.test(policy.name());
            if (mayWait && policy.mode() == Mode.ENFORCE) {
                queueing.add(policy);
                maxQueued += policy.queueLimit();
            }
        }
        Container container = Container.find(beans);
        int threads = threads(container);
        if (maxQueued < threads) {
            return null;
        }
        return "Up to " + maxQueued + " requests may wait in queues ("
                + queueing.stream()
                        .map(policy -> policy.name() + ": " + policy.queueLimit())
                        .collect(Collectors.joining(", "))
                + "), and "
                + (container == null
                        ? "each occupies a thread of the server"
                        : container.name() + " has " + threads + " threads")
                + ": while all threads wait, no other request is served, not even one that no policy limits."
                + " Set a lower 'queue-limit', "
                + (container == null ? "more threads of the server" : "a higher '" + container.property() + "'")
                + ", or 'spring.threads.virtual.enabled: true' on Java 21 or later";
    }

    private int threads(@Nullable Container container) {
        if (Threading.VIRTUAL.isActive(environment)) {
            return Integer.MAX_VALUE;
        }
        return container == null
                ? Container.DEFAULT_THREADS
                : environment.getProperty(container.property(), Integer.class, Container.DEFAULT_THREADS);
    }

    /** @param property the property for the maximum number of its threads */
    private record Container(String name, String property) {

        static final int DEFAULT_THREADS = 200;

        /** Returns null for a web archive without an embedded server, and for a server factory of the application. */
        static @Nullable Container find(BeanFactory beans) {
            if (beans.containsBean("tomcatServletWebServerFactory")) {
                return new Container("Tomcat", "server.tomcat.threads.max");
            }
            return beans.containsBean("jettyServletWebServerFactory")
                    ? new Container("Jetty", "server.jetty.threads.max")
                    : null;
        }
    }
}
