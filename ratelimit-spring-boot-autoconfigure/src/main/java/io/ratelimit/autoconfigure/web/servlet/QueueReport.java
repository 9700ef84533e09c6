package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.thread.Threading;
import org.springframework.core.env.Environment;

/**
 * The warning that the queues of all policies together may hold as many requests as the servlet container has threads.
 *
 * @param callsMayWait whether annotations let calls wait for tokens of the policy of a name
 */
record QueueReport(Throttlers throttlers, Predicate<String> callsMayWait) {

    void log(BeanFactory beans, Environment environment) {
        List<ThrottlePolicy> queueing = new ArrayList<>();
        long maxQueued = 0;
        for (PolicyThrottler throttler : throttlers.all()) {
            ThrottlePolicy policy = throttler.policy();
            if (mayWait(policy)) {
                queueing.add(policy);
                maxQueued += policy.queueLimit();
            }
        }
        Container container = Container.find(beans);
        int threads = threads(container, environment);
        if (maxQueued >= threads) {
            warn(maxQueued, queueing, container, threads);
        }
    }

    private boolean mayWait(ThrottlePolicy policy) {
        boolean waits = !policy.maxWait().isZero() || callsMayWait.test(policy.name());
        return waits && policy.mode() == Mode.ENFORCE;
    }

    private static int threads(@Nullable Container container, Environment environment) {
        if (Threading.VIRTUAL.isActive(environment)) {
            return Integer.MAX_VALUE;
        }
        return container == null
                ? Container.DEFAULT_THREADS
                : Binder.get(environment)
                        .bind(container.property(), Integer.class)
                        .orElse(Container.DEFAULT_THREADS);
    }

    private static void warn(
            long maxQueued, List<ThrottlePolicy> queueing, @Nullable Container container, int threads) {
        String each = queueing.stream()
                .map(policy -> policy.name() + ": " + policy.queueLimit())
                .collect(Collectors.joining(", "));
        String server = container == null
                ? "each occupies a thread of the server"
                : container.name() + " has " + threads + " threads";
        String remedy = container == null ? "more threads of the server" : "a higher '" + container.property() + "'";
        StartupReport.logger.warn("Up to " + maxQueued + " requests may wait in queues (" + each + "), and " + server
                + ": while all threads wait, no other request is served, not even one that no policy limits."
                + " Set a lower 'queue-limit', " + remedy
                + ", or 'spring.threads.virtual.enabled: true' on Java 21 or later");
    }

    /**
     * A servlet container that Spring Boot starts.
     *
     * @param property the property for the maximum number of its threads
     */
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
