package io.ratelimit.web.servlet;

import io.ratelimit.Throttlers;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.core.env.Environment;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;
import org.springframework.web.util.pattern.PatternParseException;

/**
 * Reads the part of the policies that selects requests: paths, methods, condition and phase.
 *
 * @param excludePaths the paths that the application excludes from all policies without a written early phase
 * @param parser the parser of Spring MVC, so that paths match as they match there
 * @param authenticates whether something authenticates requests between the two phases
 */
record RequestPolicyReader(
        ConfiguredPolicies policies,
        List<String> excludePaths,
        Throttlers throttlers,
        Environment environment,
        PathPatternParser parser,
        boolean authenticates) {

    private static final Log logger = LogFactory.getLog(RequestPolicyReader.class);
    private static final Pattern METHOD = Pattern.compile("[A-Z][A-Z0-9-]*");
    private static final List<String> HTTP_METHODS =
            List.of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT");

    /**
     * @throws InvalidConfigurationPropertyValueException if a path, a method, a status or the phase can't be used
     * @throws RateLimitConfigurationException if tiers have nothing that selects them, or a bean of a key is missing
     */
    List<RequestPolicy> read() {
        List<PathPattern> excluded = patterns("ratelimit.exclude-paths", excludePaths);
        List<RequestPolicy> read = new ArrayList<>();
        for (ConfiguredPolicy policy : policies.thatApplyTo(AppliesTo.REQUESTS)) {
            read.add(read(policy, excluded));
        }
        return read;
    }

    private RequestPolicy read(ConfiguredPolicy configured, List<PathPattern> excludedForAll) {
        Policy policy = configured.properties();
        checkTier(configured);
        warnOfCost(configured);
        boolean keepsCharges = policy.phase() == Phase.BEFORE_AUTHENTICATION;
        List<PathPattern> excluded = patterns(configured.property("exclude-paths"), policy.excludePaths());
        if (!keepsCharges) {
            excluded.addAll(excludedForAll);
        }
        List<PathPattern> paths = patterns(configured.property("paths"), policy.paths());
        paths.replaceAll(this::withoutTrailingSlash);
        RequestPolicy.Selection selection = new RequestPolicy.Selection(
                paths,
                excluded,
                methods(configured.property("methods"), policy.methods()),
                policies.condition(configured));
        return new RequestPolicy(
                throttlers.get(configured.name()),
                policies.key(configured, throttlers.listener()),
                policies.cost(configured),
                Phase.of(RateLimitProperties.property(configured.name()), policy, authenticates),
                selection,
                new RequestPolicy.Afterwards(
                        keepsCharges, refundOn(configured.property("refund-on"), policy.refundOn()), policy.settle()));
    }

    private static void checkTier(ConfiguredPolicy policy) {
        boolean shares = !policy.properties().shares().isEmpty();
        if (policy.properties().tier() == null
                && (shares || !policy.policy().tiers().isEmpty())) {
            String unit = shares ? "share" : "tier";
            throw new RateLimitConfigurationException(
                    "The throttle policy '" + policy.name() + "' has " + unit + "s, but nothing selects the " + unit
                            + " of a request.",
                    "Set '" + policy.property("tier") + ": role' if " + unit
                            + "s are named like roles of users, or set it to 'bean:NAME' or 'expression:SPEL'.",
                    policy.property(unit + "s"));
        }
    }

    private static void warnOfCost(ConfiguredPolicy policy) {
        Long constant = policy.properties().cost().constant();
        if (constant != null && constant < 1) {
            logger.warn("Throttle policy '" + policy.name() + "' has the cost " + constant
                    + ": each request costs 1 token. Set '" + policy.property("cost") + "' to 1 or more");
        }
    }

    private static @Nullable RefundOn refundOn(String property, List<String> statuses) {
        try {
            return statuses.isEmpty() ? null : RefundOn.of(statuses);
        } catch (IllegalArgumentException invalid) {
            throw new InvalidConfigurationPropertyValueException(property, statuses, invalid.getMessage());
        }
    }

    private List<PathPattern> patterns(String property, List<String> texts) {
        List<PathPattern> patterns = new ArrayList<>(texts.size());
        for (int i = 0; i < texts.size(); i++) {
            patterns.add(pattern(element(property, i), texts.get(i)));
        }
        return patterns;
    }

    /** Returns the property of an element of a list, or the list's property if it is written as one text with commas. */
    private String element(String property, int index) {
        String element = property + "[" + index + "]";
        return environment.containsProperty(element) ? element : property;
    }

    private PathPattern pattern(String property, String text) {
        if (!text.startsWith("/")) {
            throw new InvalidConfigurationPropertyValueException(
                    property,
                    text,
                    "A path pattern must begin with '/', as in '/api/**', but was '" + text
                            + "', which would match nothing.");
        }
        try {
            return parser.parse(text);
        } catch (PatternParseException invalid) {
            throw new InvalidConfigurationPropertyValueException(property, text, invalid.toDetailedString());
        }
    }

    /** Removes the trailing slash of a pattern, because paths of requests are compared without it. */
    private PathPattern withoutTrailingSlash(PathPattern pattern) {
        String text = pattern.getPatternString();
        return text.length() > 1 && text.endsWith("/") ? parser.parse(text.substring(0, text.length() - 1)) : pattern;
    }

    private Set<String> methods(String property, List<String> methods) {
        for (int i = 0; i < methods.size(); i++) {
            String method = methods.get(i);
            if (!METHOD.matcher(method).matches()) {
                throw new InvalidConfigurationPropertyValueException(
                        element(property, i),
                        method,
                        "A method must be in capital letters, as in 'GET' or 'POST', but was '" + method
                                + "', which would match nothing.");
            }
            if (!HTTP_METHODS.contains(method)) {
                logger.warn("'" + method + "' in '" + property + "' is not a method that HTTP defines: it selects no"
                        + " request unless clients use it. HTTP has "
                        + String.join(", ", HTTP_METHODS));
            }
        }
        return Set.copyOf(methods);
    }
}
