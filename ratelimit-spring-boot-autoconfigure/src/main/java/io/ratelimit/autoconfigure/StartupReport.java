package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.PolicyPhase;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.RefundOn;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * The report of a servlet application about its limits: one line for each policy, and warnings of probable mistakes.
 * Warnings about endpoints that don't exist come last, when a management server with its own endpoints has started.
 *
 * @param throttlers the throttlers of all policies, with those of limits in annotations
 * @param operations the annotated methods, if the application supports annotations
 * @param servers the endpoints of this server, and later of a management server
 */
record StartupReport(
        RequestPolicies policies,
        Throttlers throttlers,
        Endpoints endpoints,
        @Nullable RateLimitedOperations operations,
        PolicyReport report,
        List<Endpoints> servers,
        ApplicationContext context)
        implements SmartInitializingSingleton, ApplicationListener<ContextRefreshedEvent> {

    private static final String MANAGEMENT = "rateLimitEndpoints";
    static final Log logger = LogFactory.getLog(StartupReport.class);

    /** Runs after the annotations are checked, which adds the throttlers of their limits. */
    @Override
    public void afterSingletonsInstantiated() {
        if (operations != null) {
            report.reportAnnotated(operations);
        }
        reportPolicies();
        new RequestPolicyWarnings(policies.all(), endpoints).log();
        ServerWarnings server = new ServerWarnings(context, context.getEnvironment());
        server.warnOfQueues(throttlers, operations == null ? policy -> false : operations::mayWait);
        server.logClientIp(policies.all(), report.properties().clientIp());
    }

    /** Runs after all servers have started. A management server publishes the event of its own context here too, before. */
    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        ApplicationContext started = event.getApplicationContext();
        if (started != context && started.containsLocalBean(MANAGEMENT)) {
            Endpoints management = started.getBean(MANAGEMENT, Endpoints.class);
            servers.add(management);
            new RequestPolicyWarnings(policies.all(), management).warnOfHealth();
        } else if (started == context) {
            List<String> patterns = servers.stream()
                    .flatMap(server -> server.patterns().stream())
                    .toList();
            List<String> names =
                    servers.stream().flatMap(server -> server.names().stream()).toList();
            RequestPolicyWarnings warnings = new RequestPolicyWarnings(policies.all(), endpoints);
            String contextPath = context.getEnvironment().getProperty("server.servlet.context-path", "");
            warnings.logUnknown(patterns, contextPath);
            if (warnings.namePaths()) {
                warnings.warnOfUnservedPaths(new ServedPaths(context, servers, parser()), contextPath);
            }
            report.properties().policies().forEach((name, policy) -> warnings.warnOfOverrides(name, policy, names));
        }
    }

    private PathPatternParser parser() {
        return endpoints.parser(
                context.containsBean("mvcPatternParser")
                        ? context.getBean("mvcPatternParser", PathPatternParser.class)
                        : PathPatternParser.defaultInstance);
    }

    /** Compares by identity: for each event Spring hashes the listeners, and a record would hash all that it contains. */
    @Override
    public boolean equals(@Nullable Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
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
            report.warnOfShare(policy.policy(), policy.key());
            if (policy.settle() != null && policy.policy().isGlobal()) {
                report.warnOfDebtOfAll(policy.policy(), "request");
            }
        }
    }

    private String describe(RequestPolicy request) {
        ThrottlePolicy policy = request.policy();
        Policy configured = report.properties().policies().get(policy.name());
        boolean authenticates = PolicyPhase.authenticates(report.properties(), context);
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
                + refund(request.refundOn())
                + (request.settle() == null ? "" : ", settled by " + request.settle());
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
