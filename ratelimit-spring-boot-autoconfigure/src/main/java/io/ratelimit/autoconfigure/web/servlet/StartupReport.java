package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.PolicyReport;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.RefundOn;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import io.ratelimit.web.servlet.RequestPolicy.Phase;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.core.env.Environment;
import org.springframework.web.util.pattern.PathPattern;

/**
 * The report of a servlet application about its limits: one line for each policy, and warnings of probable mistakes.
 * Runs when the application has started.
 *
 * @param throttlers the throttlers of all policies, with those of limits in annotations
 * @param operations the annotated methods, if the application supports annotations
 * @param authenticates whether something authenticates requests between the two phases
 */
record StartupReport(
        RequestPolicies policies,
        Throttlers throttlers,
        Endpoints endpoints,
        @Nullable RateLimitedOperations operations,
        PolicyReport report,
        boolean authenticates,
        BeanFactory beans,
        Environment environment)
        implements SmartInitializingSingleton {

    static final Log logger = LogFactory.getLog(StartupReport.class);

    /** Checks the annotations first, which adds the throttlers of their limits. */
    @Override
    public void afterSingletonsInstantiated() {
        if (operations != null) {
            report.reportAnnotated(throttlers, operations);
        }
        reportPolicies();
        RequestPolicyWarnings warnings = new RequestPolicyWarnings(policies.all(), endpoints);
        warnings.log(environment);
        report.properties().policies().forEach(warnings::warnOfOverrides);
        ServerWarnings server = new ServerWarnings(beans, environment);
        server.warnOfQueues(throttlers, operations == null ? policy -> false : operations::mayWait);
        server.logClientIp(policies.all(), report.properties().clientIp());
    }

    private void reportPolicies() {
        if (throttlers.all().isEmpty()) {
            logger.warn(
                    "There are no policies below 'ratelimit.policies': nothing is limited. Add a policy, for example"
                            + " 'ratelimit.policies.api.rate: 600/1m', and check the indentation of 'policies'");
        }
        for (RequestPolicy policy : policies.all()) {
            logger.info(describe(policy));
        }
        for (RequestPolicy policy : policies.all()) {
            report.warnOfClientChosenKey(policy.policy(), policy.key());
            report.warnOfClientChosenTier(policy.policy(), policy.key());
            report.hintAtNumbers(policy.policy(), policy.key());
        }
    }

    private String describe(RequestPolicy request) {
        ThrottlePolicy policy = request.policy();
        Policy configured = report.properties().policies().get(policy.name());
        boolean isLateToWait = configured != null && PolicyPhase.isLateToWait(configured, authenticates);
        return report.describe(policy, request.key(), request.cost(), "request")
                + "; "
                + (request.methods().isEmpty()
                        ? "all methods"
                        : request.methods().stream().sorted().collect(Collectors.joining(", ")))
                + ", "
                + (request.paths().isEmpty() ? "all paths" : texts(request.paths()))
                + (request.excludePaths().isEmpty() ? "" : " except " + texts(request.excludePaths()))
                + (request.condition() == null ? "" : ", if " + request.condition())
                + (request.phase() == Phase.BEFORE_AUTHENTICATION ? ", before" : ", after") + " authentication"
                + (isLateToWait ? ", because requests may wait" : "")
                + refund(request.refundOn());
    }

    private static String refund(@Nullable RefundOn refundOn) {
        if (refundOn == null) {
            return "";
        }
        return refundOn.isAuthenticated()
                ? ", returns the tokens of authenticated requests"
                : ", returns tokens on " + refundOn;
    }

    private static String texts(List<PathPattern> patterns) {
        return patterns.stream().map(PathPattern::getPatternString).collect(Collectors.joining(", "));
    }
}
