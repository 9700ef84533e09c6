package io.ratelimit.autoconfigure;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import io.ratelimit.RetryJitter;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.key.ClientIp;
import io.ratelimit.key.IpNetwork;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.MissingKey;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestTier;
import io.ratelimit.redis.FailureRule;
import io.ratelimit.web.servlet.Phase;
import io.ratelimit.web.servlet.RejectionDelay;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.NestedConfigurationProperty;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * Configuration properties for rate limiting.
 *
 * @param enabled whether rate limiting is there at all
 * @param mode how much the decisions of all policies count; the weaker of this and a policy's own mode holds, so off
 *     turns everything off
 * @param backend where the buckets are: local (the memory of each instance) or redis (shared by all instances)
 * @param onBackendFailure what holds while Redis is away: local (the same policies from memory), allow or deny (503)
 * @param headers the headers that tell clients of their limits, beside Retry-After and X-RetryAfterMs on refusals
 * @param excludePaths path patterns that no policy applies to, but those with a written phase before-authentication
 * @param clientIp how the address of a client is told
 * @param filter where the filters stand
 * @param redis how the buckets in Redis are kept
 * @param policies throttle policies by name, of lower-case letters, digits and dashes
 */
@ConfigurationProperties(prefix = RateLimitProperties.PREFIX, ignoreUnknownFields = false)
public record RateLimitProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("enforce") Mode mode,
        @DefaultValue("local") BackendKind backend,
        @DefaultValue("local") FailureRule onBackendFailure,
        @DefaultValue("draft-11") Headers headers,
        @DefaultValue List<String> excludePaths,
        @DefaultValue ClientAddress clientIp,
        @DefaultValue Filter filter,
        @DefaultValue @NestedConfigurationProperty RedisProperties redis,
        @DefaultValue Map<String, Policy> policies) {

    static final String PREFIX = "ratelimit";

    /** The headers that tell clients of their limits. Not the enum of the filter: that needs the servlet API. */
    public enum Headers {
        /** RateLimit-Policy and RateLimit, as draft-ietf-httpapi-ratelimit-headers-11 has them. */
        DRAFT_11,
        /** X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. */
        X_RATELIMIT,
        /** None. */
        NONE
    }

    /** What a policy limits. */
    public enum AppliesTo {
        /** Requests. */
        REQUESTS,
        /** The calls of methods whose annotation names it. */
        ANNOTATED
    }

    /**
     * How the address of a client is told.
     *
     * @param trustedProxies networks and addresses that may speak for a client, such as 10.0.0.0/8; without any no
     *     forwarding header is read
     * @param header the header that they do it by: x-forwarded-for, forwarded, or any that has one address
     * @param ipv6Prefix how many bits of an IPv6 address count, 32 to 128: a client has all addresses of such a network
     */
    public record ClientAddress(
            @DefaultValue List<IpNetwork> trustedProxies,
            @DefaultValue("x-forwarded-for") String header,
            @DefaultValue("64") int ipv6Prefix) {

        private static final String PROPERTY = PREFIX + ".client-ip";

        public ClientIp toClientIp() {
            if (ipv6Prefix < 32 || ipv6Prefix > 128) {
                throw new InvalidConfigurationPropertyValueException(
                        PROPERTY + ".ipv6-prefix",
                        ipv6Prefix,
                        "ipv6-prefix must be between 32 and 128, but was " + ipv6Prefix);
            }
            if (!KeyPart.isToken(header)) {
                throw new InvalidConfigurationPropertyValueException(
                        PROPERTY + ".header", header, "header must be the name of a header, such as 'x-forwarded-for'");
            }
            return new ClientIp(trustedProxies, header, ipv6Prefix);
        }
    }

    /**
     * Where the filters stand.
     *
     * @param afterAuthenticationOrder the order of the filter that knows the user, for applications that authenticate in a
     *     filter of their own; by default right behind Spring Security
     */
    public record Filter(@Nullable Integer afterAuthenticationOrder) {}

    /**
     * One throttle policy.
     *
     * @param rate the tokens that come back, and how fast, such as 600/1m, 10/s or 1/2s
     * @param capacity the most tokens a bucket holds, and so the largest burst; by default the tokens of the rate
     * @param refill whether tokens come back one by one or a period's worth at a time
     * @param cost the tokens that a request takes: a number, or an expression over the facts of the request
     * @param maxCost what a larger cost is cut to
     * @param tiers other rates by the name of the tier that a request belongs to
     * @param tier which tier that is: role (one named like a role of the user), or what could be a part of the key, such
     *     as bean:NAME or expression:SPEL
     * @param overrides keys that have a rate of their own, or none
     * @param key what a bucket is counted by, one part or several: ip, user, endpoint, method, session, header:NAME,
     *     cookie:NAME, query:NAME, path-variable:NAME, bean:NAME (a KeyResolver) or expression:SPEL; without one, one
     *     bucket serves all requests
     * @param ignoreCase whether keys that differ in case alone share a bucket
     * @param onMissingKey what holds for a request that lacks a part of the key
     * @param maxKeys the most buckets held at a time; beyond it new keys share overflow buckets
     * @param appliesTo whether it limits requests, or the calls of methods whose RateLimited annotation names it
     * @param paths path patterns where the policy applies, below the context path; everywhere by default
     * @param excludePaths path patterns where it doesn't
     * @param methods the HTTP methods it applies to, GET also for HEAD; all by default
     * @param condition an expression over the facts of the request; the policy applies where it is true or fails
     * @param phase whether it is asked before or after authentication; by default before, if nothing that it asks for can
     *     be another after. An early policy that says so keeps what it took when a later one refuses the request
     * @param maxWait how long a request that is short of tokens may wait in line for them, such as 2s; by default none
     *     waits. Those that may are asked after authentication, unless the phase is written
     * @param queueLimit the most requests that wait at a time, 20 by default; the next is refused at once
     * @param refundOn the response statuses for which it gives back what it took, such as 404, 5xx, or !401 for all but 401
     * @param rejectionDelay how late its refusals are answered, such as 2s, holding no thread
     * @param retryJitter the least and the most random addition to the retry time of a refusal, such as 1ms-5ms
     * @param status the HTTP status of a refusal
     * @param mode how much its decisions count: enforce, shadow (decide and log, refuse nothing) or off
     * @param backend where its buckets are: local or redis; by default where the application's are
     * @param onBackendFailure what holds for it while Redis is away: local, allow or deny; by default the application's
     */
    public record Policy(
            @Nullable Rate rate,
            @Nullable Long capacity,
            @DefaultValue("greedy") Refill refill,
            @DefaultValue("1") RequestCost cost,
            @Nullable Long maxCost,
            @DefaultValue Map<String, PolicyTier> tiers,
            @Nullable RequestTier tier,
            @DefaultValue List<PolicyOverride> overrides,
            @DefaultValue List<KeyPart> key,
            @DefaultValue("true") boolean ignoreCase,
            @DefaultValue("client-ip") MissingKey onMissingKey,

            @DefaultValue("" + ThrottlePolicy.DEFAULT_MAX_KEYS)
            int maxKeys,

            @DefaultValue("requests") AppliesTo appliesTo,
            @DefaultValue List<String> paths,
            @DefaultValue List<String> excludePaths,
            @DefaultValue List<String> methods,
            @Nullable RequestCondition condition,
            @Nullable Phase phase,
            @Nullable MaxWait maxWait,
            @Nullable Integer queueLimit,
            @DefaultValue List<String> refundOn,
            @DefaultValue("0s") RejectionDelay rejectionDelay,
            @Nullable RetryJitter retryJitter,
            @DefaultValue("429") int status,
            @DefaultValue("enforce") Mode mode,
            @Nullable BackendKind backend,
            @Nullable FailureRule onBackendFailure) {

        /** What a request takes, cut to the most. */
        public RequestCost cutCost() {
            return maxCost == null ? cost : cost.atMost(maxCost);
        }

        /** The policy in the application's mode. */
        ThrottlePolicy toPolicy(String name, Mode applicationMode) {
            String property = property(name);
            BucketSpec spec = toSpec(name, property);
            PolicyCosts.check(name, this, spec.capacity());
            if (status < 400 || status > 599) {
                throw new InvalidConfigurationPropertyValueException(
                        property + ".status",
                        status,
                        "status must be between 400 and 599, but was " + status
                                + ": clients would take the refusal for a success");
            }
            List<String> parts = key.stream().map(KeyPart::name).toList();
            if (Set.copyOf(parts).size() < parts.size()) {
                throw new InvalidConfigurationPropertyValueException(
                        property + ".key", String.join(", ", parts), "key must name each part once");
            }
            ThrottlePolicy policy = valid(property, name, () -> ThrottlePolicy.of(name, spec, parts));
            return valid(property + ".max-keys", maxKeys, () -> policy.withMaxKeys(maxKeys))
                    .withTiers(PolicyTier.read(property, this))
                    .withIgnoreCase(ignoreCase)
                    .withMode(mode.weaker(applicationMode))
                    .withRetryJitter(retryJitter == null ? RetryJitter.NONE : retryJitter)
                    .withWaiting(PolicyWaiting.of(name, this));
        }

        private BucketSpec toSpec(String name, String property) {
            if (rate == null) {
                throw new RateLimitConfigurationException(
                        "The throttle policy '" + name + "' has no rate.",
                        "Say how many tokens come back in which period: '" + property + ".rate: 600/1m', for example.",
                        property);
            }
            if (capacity == null) {
                return valid(property + ".rate", rate, () -> BucketSpec.of(rate).withRefill(refill));
            }
            return valid(property + ".capacity", capacity, () -> new BucketSpec(rate, capacity, refill));
        }

        private static <T> T valid(String property, Object value, Supplier<T> conversion) {
            try {
                return conversion.get();
            } catch (IllegalArgumentException refused) {
                throw new InvalidConfigurationPropertyValueException(property, value, refused.getMessage(), refused);
            }
        }
    }

    /** The names of the properties that a record binds. */
    static List<String> namesOf(Class<? extends Record> properties) {
        return Stream.of(properties.getRecordComponents())
                .map(component -> DataObjectPropertyName.toDashedForm(component.getName()))
                .toList();
    }

    /** The property of a policy. */
    public static String property(String policy) {
        return PREFIX + ".policies." + policy;
    }

    /** Where the buckets of a policy are; one of an annotation's own limit has no configuration. */
    public BackendKind backendOf(ThrottlePolicy policy) {
        Policy configured = policies.get(policy.name());
        return configured == null || configured.backend == null ? backend : configured.backend;
    }

    /** Whether any policy, or a limit of an annotation, has its buckets in Redis. */
    boolean usesRedis() {
        return backend == BackendKind.REDIS
                || policies.values().stream().anyMatch(policy -> policy.backend == BackendKind.REDIS);
    }

    /** Whether any of those is not off; so may be a limit of an annotation, where the application's are in Redis. */
    public boolean asksRedis() {
        return mode != Mode.OFF
                && (backend == BackendKind.REDIS
                        || policies.values().stream()
                                .anyMatch(policy -> policy.backend == BackendKind.REDIS && policy.mode != Mode.OFF));
    }

    /** What holds for a policy while Redis is away. */
    public FailureRule failureRuleOf(ThrottlePolicy policy) {
        Policy configured = policies.get(policy.name());
        return configured == null || configured.onBackendFailure == null
                ? onBackendFailure
                : configured.onBackendFailure;
    }

    /** The policies as the core has them. */
    List<ThrottlePolicy> toPolicies() {
        return policies.entrySet().stream()
                .map(policy -> policy.getValue().toPolicy(policy.getKey(), mode))
                .toList();
    }
}
