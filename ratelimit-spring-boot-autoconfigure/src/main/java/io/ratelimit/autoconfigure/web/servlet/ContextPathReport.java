package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.web.servlet.Endpoints;
import io.ratelimit.web.servlet.RequestPolicies;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.core.env.Environment;
import org.springframework.web.util.pattern.PathPattern;

/** Says in the log, when the application starts, which path patterns seem to be written with the context path. */
final class ContextPathReport implements SmartInitializingSingleton {

    private static final Log logger = LogFactory.getLog(ContextPathReport.class);

    private final RequestPolicies policies;
    private final Endpoints endpoints;
    private final String contextPath;

    ContextPathReport(RequestPolicies policies, Endpoints endpoints, Environment environment) {
        this.policies = policies;
        this.endpoints = endpoints;
        this.contextPath = environment.getProperty("server.servlet.context-path", "");
    }

    /** An endpoint may have the same name as the context. */
    @Override
    public void afterSingletonsInstantiated() {
        if (contextPath.length() > 1 && endpoints.patterns().stream().noneMatch(this::beginsWithContextPath)) {
            policies.all().stream()
                    .flatMap(policy -> Stream.concat(policy.paths().stream(), policy.excludePaths().stream()))
                    .map(PathPattern::getPatternString)
                    .filter(this::beginsWithContextPath)
                    .distinct()
                    .forEach(this::warn);
        }
    }

    private boolean beginsWithContextPath(String pattern) {
        return pattern.startsWith(contextPath)
                && (pattern.length() == contextPath.length() || pattern.charAt(contextPath.length()) == '/');
    }

    private void warn(String pattern) {
        String below = pattern.substring(contextPath.length());
        logger.warn("The path pattern '" + pattern + "' begins with the context path, and patterns are below it: no"
                + " endpoint is there. Say '" + (below.isEmpty() ? "/" : below) + "'");
    }
}
