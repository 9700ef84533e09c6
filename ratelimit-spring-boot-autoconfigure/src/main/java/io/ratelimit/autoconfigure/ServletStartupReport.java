package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * The report of a servlet application. Advice about endpoints that don't exist comes last, when a management server with its
 * own endpoints has started.
 */
final class ServletStartupReport extends StartupReport implements ApplicationListener<ContextRefreshedEvent> {

    private static final String MANAGEMENT = "rateLimitEndpoints";

    private final List<RequestPolicy> requests;
    private final Endpoints endpoints;
    private final ApplicationContext context;
    private final ServerAdvice server;
    private final List<Endpoints> servers = new ArrayList<>();

    /** @param endpoints the endpoints of this server */
    ServletStartupReport(
            RateLimitProperties properties,
            ConfiguredPolicies policies,
            Throttlers throttlers,
            @Nullable RateLimitedOperations operations,
            RequestPolicies requests,
            Endpoints endpoints,
            ApplicationContext context) {
        super(properties, policies, throttlers, operations, context.getEnvironment());
        this.requests = requests.all();
        this.endpoints = endpoints;
        this.context = context;
        this.server = new ServerAdvice(context, context.getEnvironment());
        servers.add(endpoints);
    }

    @Override
    @Nullable
    String line(ThrottlePolicy policy) {
        for (RequestPolicy request : requests) {
            if (request.policy().name().equals(policy.name())) {
                return line(request);
            }
        }
        return super.line(policy);
    }

    private String line(RequestPolicy request) {
        ThrottlePolicy policy = request.policy();
        Policy configured = properties.policies().get(policy.name());
        boolean authenticates = Phase.authenticates(properties, context);
        boolean isLateToWait = configured != null && Phase.isLateToWait(configured, authenticates);
        return limit(policy, request.key(), request.cost(), "request")
                + "; " + requests(request, configured == null ? List.of() : configured.excludePaths())
                + (request.selection().condition() == null
                        ? ""
                        : " if " + request.selection().condition())
                + effects(policy)
                + (request.phase() == Phase.BEFORE_AUTHENTICATION ? "; before" : "; after") + " authentication"
                + (isLateToWait ? ", because requests may wait" : "")
                + refund(request)
                + (request.settle() == null ? "" : "; settled by " + request.settle())
                + unusualPlace(policy);
    }

    private String requests(RequestPolicy request, List<String> excluded) {
        String methods = request.selection().methods().stream().sorted().collect(Collectors.joining(", "));
        String paths = request.selection().paths().stream()
                .map(PathPattern::getPatternString)
                .collect(Collectors.joining(", "));
        return (methods.isEmpty() && paths.isEmpty() ? "all requests" : (methods + " " + paths).strip())
                + (excluded.isEmpty() ? "" : " except " + String.join(", ", excluded))
                + (request.keepsCharges() && !properties.excludePaths().isEmpty() ? ", excluded ones too" : "");
    }

    private static String refund(RequestPolicy request) {
        return request.refundsAuthenticated()
                ? "; returns the tokens of authenticated requests"
                : request.refundedStatuses() == null ? "" : "; returns tokens on " + request.refundedStatuses();
    }

    @Override
    String address() {
        return server.address(properties.clientIp());
    }

    @Override
    void adviseOnRequests(PolicyAdvice advice) {
        for (RequestPolicy request : requests) {
            advice.adviseOnRequests(throttlers.get(request.policy().name()), request.key(), request.settle() != null);
        }
        new RequestPolicyAdvice(requests, endpoints, advice.advice()).addAll();
        advice.advice()
                .warn(null, server.onQueues(throttlers, operations == null ? policy -> false : operations::mayWait));
        for (String text : server.onProxies(requests, properties.clientIp())) {
            advice.advice().warn(null, text);
        }
    }

    /** Runs after all servers have started. A management server publishes the event of its own context here too, before. */
    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        ApplicationContext started = event.getApplicationContext();
        Advice advice = new Advice();
        if (started != context && started.containsLocalBean(MANAGEMENT)) {
            Endpoints management = started.getBean(MANAGEMENT, Endpoints.class);
            servers.add(management);
            new RequestPolicyAdvice(requests, management, advice).warnOfHealth();
        } else if (started == context) {
            adviseOnEndpoints(new RequestPolicyAdvice(requests, endpoints, advice));
        }
        advice.log(logger);
    }

    private void adviseOnEndpoints(RequestPolicyAdvice advice) {
        List<String> patterns = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (Endpoints server : servers) {
            patterns.addAll(server.patterns());
            names.addAll(server.names());
        }
        String contextPath = context.getEnvironment().getProperty("server.servlet.context-path", "");
        advice.warnOfUnknownNames(patterns, contextPath);
        if (advice.namePaths()) {
            advice.warnOfUnservedPaths(new ServedPaths(context, servers, parser()), contextPath);
        }
        properties.policies().forEach((name, policy) -> advice.warnOfOverrides(name, policy, names));
    }

    private PathPatternParser parser() {
        return endpoints.parser(
                context.containsBean("mvcPatternParser")
                        ? context.getBean("mvcPatternParser", PathPatternParser.class)
                        : PathPatternParser.defaultInstance);
    }
}
