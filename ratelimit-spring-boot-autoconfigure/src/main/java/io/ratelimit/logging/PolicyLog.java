package io.ratelimit.logging;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.PolicyListener;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import io.ratelimit.key.FailureListener;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * A listener that logs denials and changes of policies. A policy has at most one line about denials in ten seconds, with
 * their number. A flood of requests thus causes no flood of lines, and the denials at its end are logged too. Lines contain
 * no data of requests. Thread-safe.
 */
public final class PolicyLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog(PolicyLog.class);

    private final TimeSource time;

    /** @param time the clock of the pauses between lines */
    public PolicyLog(TimeSource time) {
        this.time = time;
    }

    /**
     * Returns a listener that logs facts of requests that policies can't determine: for each policy at most one line in ten
     * seconds, with the count since the previous line. Lines contain only the given texts and no data of requests.
     *
     * @param time the clock of the pauses between lines
     */
    public static FailureListener failures(TimeSource time) {
        Map<String, Failures> policies = new ConcurrentHashMap<>();
        return (policy, fact, reason) -> policies.computeIfAbsent(policy, name -> new Failures(name, time))
                .failed(fact + " (" + reason + ")");
    }

    @Override
    public PolicyListener added(PolicyThrottler throttler) {
        return new Lines(throttler.configured());
    }

    @Override
    public void decided(Decision decision) {}

    /** The lines of one policy. */
    private final class Lines implements PolicyListener {

        private final ThrottlePolicy configured;
        private final String policy;
        private final LineSampler denied;
        private final LineSampler shadowDenied;

        Lines(ThrottlePolicy configured) {
            this.configured = configured;
            this.policy = "Throttle policy '" + configured.name() + "'";
            this.denied = new LineSampler(time, requests -> log("denied", requests, ""));
            this.shadowDenied = new LineSampler(
                    time, requests -> log("shadow-denied", requests, "; it is in shadow mode, so none was rejected"));
        }

        private void log(String outcome, String requests, String suffix) {
            LogFields.write(configured.name(), outcome, () -> logger.info(policy + " denied " + requests + suffix));
        }

        @Override
        public void decided(Decision decision, Answer answer) {
            if (!answer.allowed() && answer.outcome() != Outcome.BACKEND_FAILED) {
                (answer.policy().mode() == Mode.SHADOW ? shadowDenied : denied).count();
            }
        }

        @Override
        public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
            LogFields.write(configured.name(), null, () -> {
                log(policy, before.spec(), after.spec(), configured.spec());
                after.tiers()
                        .forEach((tier, spec) -> log(
                                policy + " in tier '" + tier + "'",
                                before.tiers().getOrDefault(tier, before.spec()),
                                spec,
                                configured.tiers().get(tier)));
            });
        }

        private static void log(String limit, BucketSpec before, BucketSpec after, @Nullable BucketSpec configured) {
            if (!after.equals(before)) {
                logger.info(
                        limit + (after.equals(configured) ? " is as configured again: " : " was changed at runtime: ")
                                + after + "; before: " + before);
            }
        }
    }

    /** The lines of the failures of one policy. */
    private static final class Failures {

        private static final Log logger = LogFactory.getLog("io.ratelimit.logging.FailureLog");

        private final String policy;
        private final LineSampler lines;
        private volatile String latest = "";

        Failures(String policy, TimeSource time) {
            this.policy = policy;
            this.lines = new LineSampler(time, this::log);
        }

        void failed(String failure) {
            latest = failure;
            lines.count();
        }

        private void log(String requests) {
            LogFields.write(
                    policy,
                    null,
                    () -> logger.warn(
                            "Throttle policy '" + policy + "' could not determine " + latest + ", for " + requests));
        }
    }
}
