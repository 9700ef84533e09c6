package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.ip.IpNetwork;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.RateLimitProperties.OverrideEntry.Text;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.RequestPolicy;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.util.ClassUtils;
import org.springframework.web.util.pattern.PathPattern;

/**
 * The advice about users, endpoints, paths and overrides of the policies for requests. A function for one mistake returns its
 * text, or null.
 */
record RequestPolicyAdvice(List<RequestPolicy> policies, Endpoints endpoints, Advice advice) {

    private static final String SPRING_SECURITY = "org.springframework.security.web.SecurityFilterChain";
    private static final String OAUTH2 = "org.springframework.security.oauth2.core.ClaimAccessor";
    private static final int MAX_SHOWN = 10;
    private static final String PATH_VARIABLE = "path-variable:";
    private static final Pattern QUERY = Pattern.compile("\\?[^/]*=");

    /** Adds all that is known before the server has started. */
    void addAll() {
        warnOfMissingModule("Spring Security", SPRING_SECURITY, "user", "unless something else authenticates, ");
        warnOfMissingModule("Spring Security", SPRING_SECURITY, "role", "");
        warnOfMissingModule("Spring Security's OAuth2", OAUTH2, "claim:", "");
        if (!policies.isEmpty()) {
            for (String endpoint : endpoints.ineffectiveExemptions()) {
                advice.warn(
                        null,
                        "@RateLimitExempt on the handler of '" + endpoint
                                + "' has no effect: another handler of the same method and path is not exempt, and"
                                + " headers or parameters select between them. Put the annotation on all of them, or"
                                + " remove it");
            }
        }
        for (RequestPolicy policy : policies) {
            warn(policy, refund(policy));
        }
        for (RequestPolicy policy : policies) {
            for (String pattern : patterns(policy)) {
                warn(policy, query(pattern));
            }
        }
        warnOfHealth();
    }

    private void warn(RequestPolicy policy, @Nullable String text) {
        advice.warn(policy.policy().name(), text);
    }

    /**
     * Warns of path variables and paths that no endpoint has.
     *
     * @param patterns the path patterns of the endpoints of all servers
     */
    void warnOfUnknownNames(List<String> patterns, String contextPath) {
        for (RequestPolicy policy : policies) {
            for (Selector selector : Selector.of(policy)) {
                warn(policy, selector.name.startsWith(PATH_VARIABLE) ? variable(selector, patterns) : null);
            }
        }
        warnOfContextPath(contextPath, patterns);
    }

    private static @Nullable String variable(Selector selector, List<String> patterns) {
        String name = selector.name.substring(PATH_VARIABLE.length());
        boolean exists = patterns.stream()
                .anyMatch(pattern -> pattern.contains("{" + name + "}")
                        || pattern.contains("{" + name + ":")
                        || pattern.contains("{*" + name + "}"));
        return exists
                ? null
                : "No endpoint has the path variable '" + name + "', by which the throttle policy '<policy>' "
                        + selector.use + ": " + selector.withoutText;
    }

    /**
     * A fact of requests that selects their bucket, guaranteed share or tier.
     *
     * @param name the part of a key, or {@code role}
     * @param withoutText the consequence for requests that don't have the fact
     */
    private record Selector(String name, String use, String withoutText) {

        static List<Selector> of(RequestPolicy policy) {
            List<Selector> selectors = new ArrayList<>();
            for (KeyPart part : policy.key().parts()) {
                selectors.add(new Selector(part.name(), "is keyed", "'on-missing-key' decides for all requests"));
            }
            for (KeyPart part : policy.key().lane()) {
                selectors.add(new Selector(part.name(), "guarantees shares", "no request has one"));
            }
            if (policy.key().tier() != null) {
                String unit = policy.policy().shares() == null ? "tiers" : "shares";
                selectors.add(new Selector(policy.key().tier().toString(), "selects " + unit, "no request has one"));
            }
            return selectors;
        }
    }

    boolean namePaths() {
        return policies.stream().anyMatch(policy -> !policy.selection().paths().isEmpty());
    }

    /** Warns of paths that nothing serves, apart from those that another warning is about. */
    void warnOfUnservedPaths(ServedPaths served, String contextPath) {
        for (RequestPolicy policy : policies) {
            for (PathPattern pattern : policy.selection().paths()) {
                String text = pattern.getPatternString();
                if (!isBelow(contextPath, text) && query(text) == null && !served.contains(pattern)) {
                    warn(
                            policy,
                            "No endpoint of this application matches '" + text + "', a path of the throttle policy"
                                    + " '<policy>': unless a filter serves it, the policy limits nothing there. Correct"
                                    + " the path, or remove it");
                }
            }
        }
    }

    private static List<String> patterns(RequestPolicy policy) {
        List<String> patterns = new ArrayList<>();
        for (PathPattern path : policy.selection().paths()) {
            patterns.add(path.getPatternString());
        }
        for (PathPattern path : policy.selection().excludePaths()) {
            patterns.add(path.getPatternString());
        }
        return patterns;
    }

    /** Warns if a question mark outside of expressions comes before an equals sign. */
    private static @Nullable String query(String pattern) {
        return QUERY.matcher(pattern.replaceAll("\\{[^/}]*}", "")).find()
                ? "The path pattern '" + pattern + "' of the throttle policy '<policy>' looks like a path with a"
                        + " query string, which paths don't have: '?' stands for one character, so no endpoint of"
                        + " this application matches. Write '" + pattern.substring(0, pattern.indexOf('?'))
                        + "', and select requests by their query in the policy's condition"
                : null;
    }

    /** @param part the beginning of the key part that needs a type of the module */
    private void warnOfMissingModule(String module, String type, String part, String unless) {
        if (!ClassUtils.isPresent(type, RequestPolicyAdvice.class.getClassLoader())) {
            for (RequestPolicy policy : policies) {
                for (Selector selector : Selector.of(policy)) {
                    if (selector.name.startsWith(part)) {
                        warn(
                                policy,
                                "Throttle policy '<policy>' " + selector.use + " by " + selector.name + ", but "
                                        + module + " is not on the class path: " + unless + selector.withoutText);
                    }
                }
            }
        }
    }

    private static @Nullable String refund(RequestPolicy policy) {
        String excluded = policy.statusesWithoutRefund();
        if (excluded != null && policy.keepsCharges()) {
            return "Throttle policy '<policy>' guards the authentication, and returns tokens on every status except "
                    + excluded
                    + ": a client pays nothing if a later filter answers a wrong password with another status. Set"
                    + " 'ratelimit.policies.<policy>.refund-on: authenticated', or list the statuses of a success,"
                    + " such as 2xx";
        }
        return policy.refundsAuthenticated() && policy.phase() == Phase.AFTER_AUTHENTICATION
                ? "Throttle policy '<policy>' decides after authentication, and returns the tokens of authenticated"
                        + " requests: it limits only requests without a user. Remove"
                        + " 'ratelimit.policies.<policy>.refund-on', or set"
                        + " 'ratelimit.policies.<policy>.phase: before-authentication' and key the policy by 'ip'"
                : null;
    }

    /** Warns of health paths that a policy without a key covers. */
    void warnOfHealth() {
        for (String path : endpoints.patterns()) {
            if (path.toLowerCase(Locale.ROOT).endsWith("/health")) {
                PathContainer parsed = PathContainer.parsePath(path);
                for (RequestPolicy policy : policies) {
                    if (limitsProbes(policy, parsed)) {
                        warn(
                                policy,
                                "The health path '" + path
                                        + "' is limited by the throttle policy '<policy>', which has no"
                                        + " key: under load, probes would find the application dead. Set '"
                                        + exclusion(policy) + ": " + path + "/**'");
                    }
                }
            }
        }
    }

    private static boolean limitsProbes(RequestPolicy policy, PathContainer health) {
        Set<String> methods = policy.selection().methods();
        return policy.policy().isGlobal()
                && policy.policy().mode() == Mode.ENFORCE
                && (methods.isEmpty() || methods.contains("GET"))
                && policy.covers(health);
    }

    /** Returns the property to exclude a path by. The application's does not affect a written early phase. */
    private static String exclusion(RequestPolicy policy) {
        return policy.keepsCharges() ? "ratelimit.policies.<policy>.exclude-paths" : "ratelimit.exclude-paths";
    }

    /** Warns of patterns that begin with the context path, unless an endpoint begins with the same name. */
    private void warnOfContextPath(String contextPath, List<String> patterns) {
        if (patterns.stream().noneMatch(pattern -> isBelow(contextPath, pattern))) {
            policies.stream()
                    .flatMap(policy -> patterns(policy).stream())
                    .filter(pattern -> isBelow(contextPath, pattern))
                    .forEach(pattern -> advice.warn(
                            null,
                            "The path pattern '" + pattern
                                    + "' begins with the context path, but patterns are relative to"
                                    + " it: no endpoint matches. Write '"
                                    + (pattern.equals(contextPath) ? "/" : pattern.substring(contextPath.length()))
                                    + "'"));
        }
    }

    private static boolean isBelow(String contextPath, String pattern) {
        return contextPath.length() > 1
                && pattern.startsWith(contextPath)
                && (pattern.length() == contextPath.length() || pattern.charAt(contextPath.length()) == '/');
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
                String property = "ratelimit.policies." + name + ".overrides[" + i + "].keys[" + j + "]";
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
                advice.warn(
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
            advice.warn(
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
