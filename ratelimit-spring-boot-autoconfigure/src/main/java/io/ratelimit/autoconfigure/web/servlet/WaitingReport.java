package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;

/** Says in the log, when the application starts, whether as many requests may wait in line as can be served at all. */
final class WaitingReport implements SmartInitializingSingleton {

    private static final Log logger = LogFactory.getLog(WaitingReport.class);

    private final Throttlers throttlers;
    private final Predicate<String> letsCallsWait;
    private final ContainerThreads threads;

    /**
     * @param letsCallsWait whether annotations let calls wait for tokens of the policy of a name
     */
    WaitingReport(Throttlers throttlers, Predicate<String> letsCallsWait, ContainerThreads threads) {
        this.throttlers = throttlers;
        this.letsCallsWait = letsCallsWait;
        this.threads = threads;
    }

    @Override
    public void afterSingletonsInstantiated() {
        List<ThrottlePolicy> waiting = new ArrayList<>();
        long most = 0;
        for (Throttler throttler : throttlers.all()) {
            ThrottlePolicy policy = throttler.policy();
            if (letsWait(policy)) {
                waiting.add(policy);
                most += policy.waiting().queueLimit();
            }
        }
        if (most >= threads.most()) {
            warn(most, waiting);
        }
    }

    private boolean letsWait(ThrottlePolicy policy) {
        boolean waits = !policy.waiting().maxWait().isZero() || letsCallsWait.test(policy.name());
        return waits && policy.mode() == Mode.ENFORCE;
    }

    private void warn(long most, List<ThrottlePolicy> waiting) {
        String each = waiting.stream()
                .map(policy -> policy.name() + ": " + policy.waiting().queueLimit())
                .collect(Collectors.joining(", "));
        logger.warn("As many as " + most + " requests may wait in line (" + each + "), and " + threads.container()
                + " has " + threads.most() + " threads: while so many wait, nobody else is served, not even whom"
                + " no policy limits. Say a lower 'queue-limit', a higher '" + threads.property()
                + "', or 'spring.threads.virtual.enabled: true' on Java 21 or later");
    }
}
