package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.KeyBeans;
import io.ratelimit.autoconfigure.OverrideReader;
import io.ratelimit.autoconfigure.RateLimitConfigurationException;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.Overrides;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestTier;
import io.ratelimit.web.servlet.Phase;
import io.ratelimit.web.servlet.RefundOn;
import io.ratelimit.web.servlet.RequestPolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
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

/** Reads what the filter needs to know of the policies: where, when and on which requests they hold. */
final class RequestPolicyReader {

    private static final Log logger = LogFactory.getLog(RequestPolicyReader.class);
    private static final Pattern METHOD = Pattern.compile("[A-Z][A-Z0-9-]*");
    private static final List<String> HTTP_METHODS =
            List.of("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT");

    private final RateLimitProperties properties;
    private final Throttlers throttlers;
    private final Environment environment;
    private final PathPatternParser parser;
    private final KeyBeans beans;
    private final FailureListener failures;

    /**
     * @param parser that of Spring MVC, so that paths are compared as it does
     */
    RequestPolicyReader(
            RateLimitProperties properties,
            Throttlers throttlers,
            Environment environment,
            PathPatternParser parser,
            KeyBeans beans,
            FailureListener failures) {
        this.properties = properties;
        this.throttlers = throttlers;
        this.environment = environment;
        this.parser = parser;
        this.beans = beans;
        this.failures = failures;
    }

    List<RequestPolicy> read() {
        List<PathPattern> excluded = patterns("ratelimit.exclude-paths", properties.excludePaths());
        List<RequestPolicy> policies = new ArrayList<>();
        for (Map.Entry<String, Policy> policy : properties.policies().entrySet()) {
            if (policy.getValue().appliesTo() == AppliesTo.REQUESTS) {
                policies.add(read(policy.getKey(), policy.getValue(), excluded));
            }
        }
        return policies;
    }

    private RequestPolicy read(String name, Policy policy, List<PathPattern> excludedForAll) {
        String property = RateLimitProperties.property(name);
        boolean keepsCharges = policy.phase() == Phase.BEFORE_AUTHENTICATION;
        List<PathPattern> excluded = new ArrayList<>(patterns(property + ".exclude-paths", policy.excludePaths()));
        if (!keepsCharges) {
            excluded.addAll(excludedForAll);
        }
        Throttler throttler = throttlers.get(name);
        ThrottlePolicy throttled = throttler.policy();
        return new RequestPolicy(
                throttler,
                new RequestKey(
                        beans.resolve(property + ".key", policy.key()),
                        policy.onMissingKey(),
                        overrides(policy, throttled),
                        tier(property, policy, throttled),
                        failures,
                        throttlers.listener()),
                cost(name, policy),
                PolicyPhase.of(property, policy),
                keepsCharges,
                withoutTrailingSlash(patterns(property + ".paths", policy.paths())),
                List.copyOf(excluded),
                methods(property + ".methods", policy.methods()),
                policy.condition(),
                refundOn(property + ".refund-on", policy.refundOn()),
                failures);
    }

    private @Nullable RequestTier tier(String property, Policy policy, ThrottlePolicy throttled) {
        RequestTier tier = policy.tier();
        if (tier == null && !throttled.tiers().isEmpty()) {
            throw new RateLimitConfigurationException(
                    "The throttle policy '" + throttled.name() + "' has tiers, but nothing says which tier a request"
                            + " belongs to.",
                    "Say '" + property + ".tier: role', for tiers that are named like roles of the user, or"
                            + " 'bean:NAME' or 'expression:SPEL'.",
                    property + ".tiers");
        }
        return beans.resolve(property + ".tier", tier);
    }

    private static @Nullable RefundOn refundOn(String property, List<String> statuses) {
        try {
            return statuses.isEmpty() ? null : RefundOn.of(statuses);
        } catch (IllegalArgumentException refused) {
            throw new InvalidConfigurationPropertyValueException(property, statuses, refused.getMessage(), refused);
        }
    }

    private Overrides overrides(Policy policy, ThrottlePolicy throttled) {
        return new OverrideReader(policy, throttled, properties.clientIp().ipv6Prefix()).read();
    }

    private RequestCost cost(String name, Policy policy) {
        Long constant = policy.cost().constant();
        if (constant != null && constant < 1) {
            logger.warn("Throttle policy '" + name + "' has the cost " + constant
                    + ": each request counts as 1 token. Say '" + RateLimitProperties.property(name)
                    + ".cost: 1', or more");
        }
        return policy.cutCost();
    }

    private List<PathPattern> patterns(String property, List<String> texts) {
        List<PathPattern> patterns = new ArrayList<>(texts.size());
        for (int i = 0; i < texts.size(); i++) {
            patterns.add(pattern(element(property, i), texts.get(i)));
        }
        return patterns;
    }

    /** An element of a list; the list's own name where it is written as one text with commas. */
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
        } catch (PatternParseException unreadable) {
            throw new InvalidConfigurationPropertyValueException(property, text, unreadable.toDetailedString());
        }
    }

    /** Requests are compared without a trailing slash, so patterns have to be as well. */
    private List<PathPattern> withoutTrailingSlash(List<PathPattern> patterns) {
        patterns.replaceAll(this::withoutTrailingSlash);
        return List.copyOf(patterns);
    }

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
                logger.warn("'" + method + "' in '" + property + "' is no method that HTTP defines: unless clients use"
                        + " it, the policy limits nothing by it. HTTP has "
                        + String.join(", ", HTTP_METHODS));
            }
        }
        return Set.copyOf(methods);
    }
}
