package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.ip.IpNetwork;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.RefundOn;
import io.ratelimit.web.servlet.RequestPolicy;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.util.ClassUtils;
import org.springframework.web.util.pattern.PathPattern;

/** The advice about users, endpoints, paths and overrides of the policies for requests. Each method adds to the list. */
record RequestPolicyAdvice(List<RequestPolicy> policies, Endpoints endpoints, List<Advice> advice) {

    private static final String SPRING_SECURITY = "org.springframework.security.web.SecurityFilterChain";
    private static final String OAUTH2 = "org.springframework.security.oauth2.core.ClaimAccessor";
    private static final int MAX_SHOWN = 10;
    private static final String PATH_VARIABLE = "path-variable:";
    private static final Pattern QUERY = Pattern.compile("\\?[^/]*=");

    RequestPolicyAdvice(List<RequestPolicy> policies, Endpoints endpoints) {
        this(policies, endpoints, new ArrayList<>());
    }

    private void warn(@Nullable String policy, String text) {
        advice.add(Advice.warning(policy, text));
    }

    /** Adds all that is known before the server has started. */
    void addAll() {
        warnOfMissingUsers();
        warnOfMissingClaims();
        warnOfIneffectiveExemptions();
        policies.forEach(this::warnOfRefunds);
        policies.forEach(this::warnOfQueries);
        warnOfHealth();
    }

    /**
     * Warns of path variables and paths that no endpoint has.
     *
     * @param patterns the path patterns of the endpoints of all servers
     */
    void warnOfUnknownNames(List<String> patterns, String contextPath) {
        for (RequestPolicy policy : policies) {
            warnOfUnknownVariables(policy, patterns);
        }
        warnOfContextPath(contextPath, patterns);
    }

    /** Returns whether any policy is limited to some paths. */
    boolean namePaths() {
        return policies.stream().anyMatch(policy -> !policy.paths().isEmpty());
    }

    /** Warns of paths that nothing serves, apart from those that another warning is about. */
    void warnOfUnservedPaths(ServedPaths served, String contextPath) {
        for (RequestPolicy policy : policies) {
            for (PathPattern pattern : policy.paths()) {
                String text = pattern.getPatternString();
                boolean absolute = contextPath.length() > 1 && isBelow(contextPath, text);
                if (!absolute && !hasQuery(text) && !served.contains(pattern)) {
                    warn(
                            policy.policy().name(),
                            "No endpoint of this application matches '" + text + "', a path of the throttle policy '"
                                    + policy.policy().name()
                                    + "': unless a filter serves it, the policy limits nothing there. Correct the path, or"
                                    + " remove it");
                }
            }
        }
    }

    private void warnOfQueries(RequestPolicy policy) {
        Stream.concat(policy.paths().stream(), policy.excludePaths().stream())
                .map(PathPattern::getPatternString)
                .filter(RequestPolicyAdvice::hasQuery)
                .distinct()
                .forEach(pattern -> warn(
                        policy.policy().name(),
                        "The path pattern '" + pattern + "' of the throttle policy '"
                                + policy.policy().name()
                                + "' looks like a path with a query string, which paths don't have:"
                                + " '?' stands for one character, so no endpoint of this application matches. Write '"
                                + pattern.substring(0, pattern.indexOf('?'))
                                + "', and select requests by their query in the policy's condition"));
    }

    /** Returns whether a question mark outside of expressions comes before an equals sign. */
    private static boolean hasQuery(String pattern) {
        return QUERY.matcher(pattern.replaceAll("\\{[^/}]*}", "")).find();
    }

    private void warnOfMissingUsers() {
        if (!ClassUtils.isPresent(SPRING_SECURITY, RequestPolicyAdvice.class.getClassLoader())) {
            for (RequestPolicy policy : policies) {
                if (policy.policy().key().contains("user")) {
                    warn(
                            policy.policy().name(),
                            "Throttle policy '" + policy.policy().name()
                                    + "' is keyed by user, but Spring Security is not on the class path: unless something else"
                                    + " authenticates, 'on-missing-key' decides for all requests");
                }
            }
        }
    }

    private void warnOfMissingClaims() {
        if (!ClassUtils.isPresent(OAUTH2, RequestPolicyAdvice.class.getClassLoader())) {
            for (RequestPolicy policy : policies) {
                policy.policy().key().stream()
                        .filter(part -> part.startsWith("claim:"))
                        .forEach(part -> warn(
                                policy.policy().name(),
                                "Throttle policy '"
                                        + policy.policy().name() + "' is keyed by "
                                        + part
                                        + ", but Spring Security's OAuth2 is not on the class path: 'on-missing-key'"
                                        + " decides for all requests"));
            }
        }
    }

    private void warnOfIneffectiveExemptions() {
        if (!policies.isEmpty()) {
            for (String endpoint : endpoints.ineffectiveExemptions()) {
                warn(
                        null,
                        "@RateLimitExempt on the handler of '" + endpoint
                                + "' has no effect: another handler of the same method and path is not exempt, and headers or"
                                + " parameters select between them. Put the annotation on all of them, or remove it");
            }
        }
    }

    private void warnOfUnknownVariables(RequestPolicy policy, List<String> patterns) {
        for (String part : policy.policy().key()) {
            if (part.startsWith(PATH_VARIABLE) && !isVariable(part.substring(PATH_VARIABLE.length()), patterns)) {
                warn(
                        policy.policy().name(),
                        "No endpoint has the path variable '" + part.substring(PATH_VARIABLE.length())
                                + "', by which the throttle policy '"
                                + policy.policy().name()
                                + "' is keyed: 'on-missing-key' decides for all requests");
            }
        }
    }

    private static boolean isVariable(String name, List<String> patterns) {
        return patterns.stream().anyMatch(pattern -> hasVariable(name, pattern));
    }

    private static boolean hasVariable(String name, String pattern) {
        return Stream.of("{" + name + "}", "{" + name + ":", "{*" + name + "}").anyMatch(pattern::contains);
    }

    private void warnOfRefunds(RequestPolicy request) {
        RefundOn refundOn = request.refundOn();
        if (refundOn == null) {
            return;
        }
        String name = request.policy().name();
        String property = RateLimitProperties.property(name) + ".refund-on";
        if (request.keepsCharges() && refundOn.onlyExcludes()) {
            warn(
                    name,
                    "Throttle policy '" + name + "' guards the authentication, and returns tokens on every status"
                            + " except " + refundOn.toString().replace("!", "")
                            + ": a client pays nothing if a later filter answers a wrong password with another status. Set '"
                            + property + ": authenticated', or list the statuses of a success, such as 2xx");
        }
        if (refundOn.isAuthenticated() && request.policy().key().contains("user")) {
            warn(
                    name,
                    "Throttle policy '" + name + "' is keyed by user, and returns the tokens of authenticated"
                            + " requests: it limits only requests without a user. Remove '" + property
                            + "', or key the policy by 'ip'");
        }
    }

    /** Warns of health paths that a policy without a key covers. */
    void warnOfHealth() {
        for (String pattern : new LinkedHashSet<>(endpoints.patterns())) {
            if (pattern.toLowerCase(Locale.ROOT).endsWith("/health")) {
                warnOfHealth(pattern);
            }
        }
    }

    private void warnOfHealth(String path) {
        PathContainer parsed = PathContainer.parsePath(path);
        policies.stream()
                .filter(policy -> policy.policy().isGlobal() && policy.policy().mode() == Mode.ENFORCE)
                .filter(policy -> policy.methods().isEmpty() || policy.methods().contains("GET"))
                .filter(policy -> policy.covers(parsed))
                .forEach(policy -> warn(
                        policy.policy().name(),
                        "The health path '" + path + "' is limited by the throttle policy '"
                                + policy.policy().name()
                                + "', which has no key: under load, probes would find the application"
                                + " dead. Set '" + exclusion(policy) + ": " + path + "/**'"));
    }

    /** Returns the property to exclude a path by. The application's does not affect a written early phase. */
    private static String exclusion(RequestPolicy policy) {
        return policy.keepsCharges()
                ? RateLimitProperties.property(policy.policy().name()) + ".exclude-paths"
                : "ratelimit.exclude-paths";
    }

    /** Warns of patterns that begin with the context path, unless an endpoint begins with the same name. */
    private void warnOfContextPath(String contextPath, List<String> patterns) {
        if (contextPath.length() > 1 && patterns.stream().noneMatch(pattern -> isBelow(contextPath, pattern))) {
            policies.stream()
                    .flatMap(policy -> Stream.concat(policy.paths().stream(), policy.excludePaths().stream()))
                    .map(PathPattern::getPatternString)
                    .filter(pattern -> isBelow(contextPath, pattern))
                    .distinct()
                    .forEach(pattern -> warnOfRelativePath(pattern, pattern.substring(contextPath.length())));
        }
    }

    private static boolean isBelow(String contextPath, String pattern) {
        return pattern.startsWith(contextPath)
                && (pattern.length() == contextPath.length() || pattern.charAt(contextPath.length()) == '/');
    }

    private void warnOfRelativePath(String pattern, String relative) {
        warn(
                null,
                "The path pattern '" + pattern + "' begins with the context path, but patterns are relative to it:"
                        + " no endpoint matches. Write '" + (relative.isEmpty() ? "/" : relative) + "'");
    }

    /**
     * Warns of overrides that probably apply to no request.
     *
     * @param endpointNames the endpoints of all servers
     */
    void warnOfOverrides(String name, Policy policy, Collection<String> endpointNames) {
        for (int i = 0; i < policy.overrides().size(); i++) {
            List<List<Text>> keys = policy.overrides().get(i).keys();
            for (int j = 0; j < keys.size(); j++) {
                String property = RateLimitProperties.property(name) + ".overrides[" + i + "].keys[" + j + "]";
                warnOfOverride(property, policy, keys.get(j), endpointNames);
            }
        }
    }

    private void warnOfOverride(String property, Policy policy, List<Text> key, Collection<String> endpointNames) {
        List<String> parts = KeyPart.names(policy.key());
        int endpoint = parts.indexOf("endpoint");
        if (endpoint >= 0) {
            warnOfUnknownEndpoint(property, key.get(endpoint).text(), policy.ignoreCase(), endpointNames);
        }
        for (int i = 0; i < parts.size() && !parts.contains("ip"); i++) {
            if (isNetwork(key.get(i).text())) {
                warn(
                        null,
                        "'" + property + "' has '" + key.get(i).text()
                                + "', which looks like a network but is compared with the text of " + parts.get(i)
                                + ": the policy's key has no ip");
            }
        }
    }

    private static boolean isNetwork(String text) {
        try {
            IpNetwork.of(text);
            return text.indexOf('/') >= 0;
        } catch (IllegalArgumentException notAnAddress) {
            return false;
        }
    }

    private void warnOfUnknownEndpoint(String property, String endpoint, boolean ignoreCase, Collection<String> names) {
        if (!endpoint.equals(Endpoints.NONE)
                && names.stream()
                        .noneMatch(name -> ignoreCase ? name.equalsIgnoreCase(endpoint) : name.equals(endpoint))) {
            warn(
                    null,
                    "'" + property + "' names the endpoint '" + endpoint
                            + "', which doesn't exist: the override applies to no request. The endpoints are: "
                            + (names.isEmpty()
                                    ? "none"
                                    : names.stream().limit(MAX_SHOWN).collect(Collectors.joining("', '", "'", "'")))
                            + (names.size() > MAX_SHOWN ? " and others" : ""));
        }
    }
}
