package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.ClientChoices;
import io.ratelimit.autoconfigure.PolicyDescription;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.Endpoints;
import io.ratelimit.web.servlet.Phase;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.http.server.PathContainer;
import org.springframework.util.ClassUtils;
import org.springframework.web.util.pattern.PathPattern;

/** Says in the log, when the application starts, what is limited and how, and what looks like a mistake. */
final class PolicyReport implements SmartInitializingSingleton {

    private static final String SPRING_SECURITY = "org.springframework.security.web.SecurityFilterChain";
    private static final String PATH_VARIABLE = "path-variable:";
    private static final Log logger = LogFactory.getLog(PolicyReport.class);

    private final List<RequestPolicy> policies;
    private final Throttlers throttlers;
    private final Endpoints endpoints;
    private final RateLimitProperties properties;

    /**
     * @param throttlers also those of the limits that annotations bring, which have been read by the start's end
     */
    PolicyReport(RequestPolicies policies, Throttlers throttlers, Endpoints endpoints, RateLimitProperties properties) {
        this.policies = policies.all();
        this.throttlers = throttlers;
        this.endpoints = endpoints;
        this.properties = properties;
    }

    @Override
    public void afterSingletonsInstantiated() {
        if (throttlers.all().isEmpty()) {
            logger.warn(
                    "No throttle policies are configured below 'ratelimit.policies': nothing is limited. Add one, such"
                            + " as 'ratelimit.policies.api.rate: 600/1m', and check the indentation of 'policies'");
        }
        for (RequestPolicy policy : policies) {
            logger.info(describe(policy));
        }
        for (RequestPolicy policy : policies) {
            ClientChoices choices = new ClientChoices(policy.policy(), policy.key());
            choices.warnOfKey(logger);
            choices.warnOfTier(logger);
        }
        warnOfNoUsers();
        warnOfExemptionsInVain();
        for (RequestPolicy policy : policies) {
            warnOfUnknownVariables(policy);
        }
        for (String pattern : new LinkedHashSet<>(endpoints.patterns())) {
            if (isHealth(pattern)) {
                warnOfHealth(pattern);
            }
        }
    }

    private String describe(RequestPolicy request) {
        ThrottlePolicy policy = request.policy();
        Policy configured = properties.policies().get(policy.name());
        return PolicyDescription.of(policy, request.key(), request.cost(), "request", properties)
                + "; "
                + (request.methods().isEmpty()
                        ? "all methods"
                        : request.methods().stream().sorted().collect(Collectors.joining(", ")))
                + ", "
                + (request.paths().isEmpty() ? "all paths" : texts(request.paths()))
                + (request.excludePaths().isEmpty() ? "" : " but " + texts(request.excludePaths()))
                + (request.condition() == null ? "" : ", if " + request.condition()) + ", "
                + (request.phase() == Phase.BEFORE_AUTHENTICATION ? "before" : "after") + " authentication"
                + (configured != null && PolicyPhase.isLateToWait(configured) ? ", since it lets requests wait" : "")
                + (request.refundOn() == null ? "" : ", gives back on " + request.refundOn());
    }

    private static String texts(List<PathPattern> patterns) {
        return patterns.stream().map(PathPattern::getPatternString).collect(Collectors.joining(", "));
    }

    private void warnOfNoUsers() {
        if (!ClassUtils.isPresent(SPRING_SECURITY, PolicyReport.class.getClassLoader())) {
            for (RequestPolicy policy : policies) {
                if (policy.policy().key().contains("user")) {
                    logger.warn("Throttle policy '" + policy.policy().name()
                            + "' is keyed by user, but Spring Security is not there: unless something"
                            + " else authenticates, 'on-missing-key' decides for all requests");
                }
            }
        }
    }

    private void warnOfExemptionsInVain() {
        if (!policies.isEmpty()) {
            for (String endpoint : endpoints.exemptInVain()) {
                logger.warn("@RateLimitExempt on the handler of '" + endpoint
                        + "' doesn't free its requests: by their headers or parameters others of the same method and"
                        + " path may get them, and are not exempt. Put it on those as well, or remove it");
            }
        }
    }

    private void warnOfUnknownVariables(RequestPolicy policy) {
        for (String part : policy.policy().key()) {
            if (part.startsWith(PATH_VARIABLE) && !isVariable(part.substring(PATH_VARIABLE.length()))) {
                logger.warn("No endpoint has the path variable '" + part.substring(PATH_VARIABLE.length())
                        + "', by which the throttle policy '" + policy.policy().name()
                        + "' is keyed: 'on-missing-key' decides for all requests");
            }
        }
    }

    private boolean isVariable(String name) {
        return endpoints.patterns().stream().anyMatch(pattern -> hasVariable(name, pattern));
    }

    private static boolean hasVariable(String name, String pattern) {
        return Stream.of("{" + name + "}", "{" + name + ":", "{*" + name + "}").anyMatch(pattern::contains);
    }

    private static boolean isHealth(String pattern) {
        return pattern.toLowerCase(Locale.ROOT).endsWith("/health");
    }

    private void warnOfHealth(String path) {
        PathContainer parsed = PathContainer.parsePath(path);
        policies.stream()
                .filter(policy -> policy.policy().isGlobal() && policy.policy().mode() == Mode.ENFORCE)
                .filter(policy -> policy.methods().isEmpty() || policy.methods().contains("GET"))
                .filter(policy -> policy.covers(parsed))
                .forEach(policy -> logger.warn("The health path '" + path + "' is limited by the throttle policy '"
                        + policy.policy().name() + "', which has no key: under load the application would look dead to"
                        + " whoever probes it. Say '" + exclusion(policy) + ": " + path + "/**'"));
    }

    /** Where to exclude a path: a written early phase is not bound by what the application excludes. */
    private static String exclusion(RequestPolicy policy) {
        return policy.keepsCharges()
                ? RateLimitProperties.property(policy.policy().name()) + ".exclude-paths"
                : "ratelimit.exclude-paths";
    }
}
