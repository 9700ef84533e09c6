package io.ratelimit.policy;

import static java.util.Objects.requireNonNullElse;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import io.ratelimit.RetryJitter;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.key.RequestKey.RequestLimit;
import io.ratelimit.key.RequestTier;
import io.ratelimit.key.ip.ClientIp;
import io.ratelimit.key.ip.IpNetwork;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.BackendProperties.Jdbc;
import io.ratelimit.policy.BackendProperties.Redis;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.time.ZoneId;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.NestedConfigurationProperty;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.bind.Name;

/**
 * Configuration properties for rate limiting.
 *
 * @param enabled Whether rate limiting is enabled.
 * @param mode Whether policies are enforced: enforce, shadow (count and log denials, reject nothing) or off. For each
 *     policy, the weaker of this mode and its own mode applies.
 * @param backend Location of the buckets: local (the memory of each instance), redis or jdbc (shared by all instances).
 * @param onBackendFailure Decision while Redis or the database is unavailable: local (the same policies from memory), allow
 *     or deny (503).
 * @param headers Headers that inform clients about their limits, in addition to Retry-After and X-RetryAfterMs.
 * @param excludePaths Path patterns that are excluded from all policies except those that set phase to
 *     before-authentication.
 * @param clientIp Detection of the client's address.
 * @param filter Position of the filters.
 * @param redis Storage of buckets in Redis.
 * @param jdbc Storage of buckets in a database.
 * @param demand Measurement of the limits that the traffic would need.
 * @param policies Throttle policies by name. A name has lower-case letters, digits and dashes.
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
        @NestedConfigurationProperty @DefaultValue Redis redis,
        @NestedConfigurationProperty @DefaultValue Jdbc jdbc,
        @DefaultValue Demand demand,
        @DefaultValue Map<String, Policy> policies) {

    static final String PREFIX = "ratelimit";

    /** Headers that inform clients about their limits. The filter's enum is another, because it needs the servlet API. */
    public enum Headers {
        /** RateLimit-Policy and RateLimit, as defined by draft-ietf-httpapi-ratelimit-headers-11. */
        DRAFT_11,
        /** X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. */
        X_RATELIMIT,
        /** No headers. */
        NONE
    }

    /** Targets of a policy. */
    public enum AppliesTo {
        /** Requests. */
        REQUESTS,
        /** Calls of methods whose annotation names the policy. */
        ANNOTATED
    }

    /**
     * Detection of the client's address.
     *
     * @param trustedProxies Addresses or networks of trusted proxies, such as 10.0.0.0/8. Forwarding headers of other
     *     peers are ignored.
     * @param header Header in which the proxies name the client: x-forwarded-for, forwarded, or a header with one address.
     * @param ipv6Prefix Number of bits that identify an IPv6 client, from 32 to 128. All addresses of that network count
     *     as one client.
     */
    public record ClientAddress(
            @DefaultValue List<IpNetwork> trustedProxies,
            @DefaultValue("x-forwarded-for") String header,
            @DefaultValue("64") int ipv6Prefix) {

        public ClientIp toClientIp() {
            return new ClientIp(trustedProxies, header, ipv6Prefix);
        }
    }

    /**
     * Position of the filters.
     *
     * @param afterAuthenticationOrder Order of the filter that runs after authentication, for applications with an
     *     authentication filter of their own. By default right after Spring Security.
     */
    public record Filter(@Nullable Integer afterAuthenticationOrder) {}

    /**
     * Measurement of the limits that the traffic would need.
     *
     * @param enabled Whether to measure which limits the traffic would need. By default where the actuator endpoint
     *     ratelimits or the dashboard is exposed.
     */
    public record Demand(@Nullable Boolean enabled) {}

    /**
     * One throttle policy.
     *
     * @param rate Tokens that a bucket regains, and the period, such as 600/1m, 10/s, 600/minute or 1/2s. Required,
     *     unless in-flight is set.
     * @param capacity Number of tokens in a full bucket, which is the largest burst, such as 800. Default: the tokens
     *     of the rate.
     * @param inFlight Number of requests of a key that may run at the same time, such as 4, beside a rate or alone.
     *     Default: any number.
     * @param refill Refill of a bucket: greedy (continuously), interval (all tokens of a period at once) or calendar (all
     *     tokens of a day, week or month at once, at its beginning). Default: greedy.
     * @param zone Time zone of the calendar, such as Europe/Berlin, with refill: calendar. Default: UTC.
     * @param cost Tokens that a request takes: a number, such as 5, or an expression over the facts of the request,
     *     such as query('limit') ?: 20. Default: 1.
     * @param maxCost Maximum of the cost, such as 50. A larger cost is reduced to it, and a cost that fails counts as
     *     the maximum. Default: none.
     * @param limit Source of a request's own rate and capacity: bean:NAME (a LimitResolver). It replaces the policy's
     *     limit and that of the tier, but not an override. Default: none.
     * @param settle Source of the actual cost, which replaces the cost when the response is complete: attribute:NAME
     *     (of the request), response-header:NAME or code (an ActualCost). Default: none, so the cost is final.
     * @param tiers Limits of tiers by their names, such as free and pro. A request may belong to one tier. Default:
     *     none.
     * @param tier Source of the request's tier: role (a tier named like a role of the user), or a source that a key
     *     part can have, such as header:X-Plan, bean:NAME or expression:SPEL. Default: none.
     * @param guaranteed Share of the limit that is guaranteed to each key, such as each tenant, and that others can't take.
     *     Default: none.
     * @param shares Shares of the limit by name, which the tier of a request selects: guaranteed to its requests, or left
     *     by them to others. Default: none.
     * @param overrides Limits of single keys or networks, or exemptions for them. Default: none.
     * @param key Parts of the key that identifies a bucket, one or a list: ip, user, endpoint, method, session,
     *     header:NAME, cookie:NAME, query:NAME, path-variable:NAME, claim:NAME (of a JWT or OAuth2 user), bean:NAME
     *     (a KeyResolver) or expression:SPEL. Default: none, so all requests share one bucket.
     * @param ignoreCase Whether keys that differ only in case share a bucket. Default: true.
     * @param onMissingKey Treatment of a request that lacks a part of the key: client-ip (use the address instead),
     *     shared (one bucket for all of them), deny (403) or skip. Default: client-ip.
     * @param maxKeys Maximum number of buckets, such as 1000000. Beyond it, new keys share overflow buckets. Default:
     *     100000.
     * @param appliesTo Target of the policy: requests, or annotated (calls of methods whose RateLimited annotation
     *     names it). Default: requests.
     * @param paths Path patterns to which the policy applies, relative to the context path, such as /orders/**.
     *     Default: all paths.
     * @param excludePaths Path patterns to which the policy does not apply, such as /orders/{id}/paid. Default: none.
     * @param methods HTTP methods to which the policy applies, such as POST. GET includes HEAD. Default: all methods.
     * @param condition Expression over the facts of the request, such as !roles.contains('ADMIN'). The policy applies
     *     if it is true, or if it fails. Default: none.
     * @param phase Phase of the policy: before-authentication or after-authentication. A policy with a written early
     *     phase keeps its tokens when a later policy rejects the request. Default: after, if the policy needs the user,
     *     if its requests may wait, or if the application authenticates and the key has no ip; otherwise before.
     * @param maxWait Longest wait of a request for missing tokens, such as 2s or 500ms. A policy whose requests may
     *     wait runs after authentication, unless its phase is written. Default: 0s, so no request waits.
     * @param queueLimit Maximum number of waiting requests, such as 50. Further requests are rejected at once. Default:
     *     20.
     * @param refundOn Conditions that return the tokens of a request: authenticated (the request passed authentication
     *     with a user), or statuses of the response, such as 404, 5xx, or !401 for all except 401. Default: none.
     * @param rejectionDelay Delay of the response to a rejected request, such as 2s. Occupies no thread. Default: 0s.
     * @param retryJitter Range of the random addition to the retry time, such as 1ms-5ms. Default: none.
     * @param headers Headers that inform clients about this limit: draft-11, x-ratelimit or none. Default: the
     *     application's.
     * @param status HTTP status of a rejection, from 400 to 599, such as 503. A missing key stays 403, and a failed backend
     *     503. Default: 429.
     * @param mode Whether the policy is enforced: enforce, shadow (count and log denials, reject nothing) or off.
     *     Default: enforce.
     * @param backend Location of the policy's buckets: local, redis or jdbc. Default: the application's.
     * @param lease Longest time for which an instance takes tokens from Redis or the database ahead, to decide requests by
     *     itself, such as 50ms. Default: 0s, so Redis or the database decides each request.
     * @param onBackendFailure Decision while Redis or the database is unavailable: local, allow or deny. Default: the
     *     application's.
     */
    public record Policy(
            @Nullable Rate rate,
            @Nullable Long capacity,
            @Nullable Integer inFlight,
            Refill refill,
            @Nullable ZoneId zone,
            RequestCost cost,
            @Nullable Long maxCost,
            @Nullable RequestLimit limit,
            @Nullable Settle settle,
            Map<String, Tier> tiers,
            @Nullable RequestTier tier,
            @Nullable GuaranteedShare guaranteed,
            Map<String, NamedShare> shares,
            List<OverrideEntry> overrides,
            List<KeyPart> key,
            @DefaultValue("true") boolean ignoreCase,
            MissingKey onMissingKey,

            @DefaultValue("" + ThrottlePolicy.DEFAULT_MAX_KEYS)
            int maxKeys,

            AppliesTo appliesTo,
            List<String> paths,
            List<String> excludePaths,
            List<String> methods,
            @Nullable RequestCondition condition,
            @Nullable Phase phase,
            @Nullable MaxWait maxWait,
            @Nullable Integer queueLimit,
            List<String> refundOn,
            RejectionDelay rejectionDelay,
            @Nullable RetryJitter retryJitter,
            @Nullable Headers headers,
            @DefaultValue("429") int status,
            Mode mode,
            @Nullable BackendKind backend,
            @Nullable Lease lease,
            @Nullable FailureRule onBackendFailure) {

        /**
         * Replaces null, which binding passes for absent properties. The defaults are here because no metadata describes
         * the values of a map. Binding would convert those in annotations again for each policy, at half of its cost.
         */
        public Policy {
            refill = requireNonNullElse(refill, Refill.GREEDY);
            cost = requireNonNullElse(cost, RequestCost.ONE);
            tiers = requireNonNullElse(tiers, Map.of());
            shares = requireNonNullElse(shares, Map.of());
            overrides = requireNonNullElse(overrides, List.of());
            key = requireNonNullElse(key, List.of());
            onMissingKey = requireNonNullElse(onMissingKey, MissingKey.CLIENT_IP);
            appliesTo = requireNonNullElse(appliesTo, AppliesTo.REQUESTS);
            paths = requireNonNullElse(paths, List.of());
            excludePaths = requireNonNullElse(excludePaths, List.of());
            methods = requireNonNullElse(methods, List.of());
            refundOn = requireNonNullElse(refundOn, List.of());
            rejectionDelay = requireNonNullElse(rejectionDelay, RejectionDelay.NONE);
            mode = requireNonNullElse(mode, Mode.ENFORCE);
        }
    }

    /**
     * The limit of the requests that belong to a tier.
     *
     * @param rate Tokens that a bucket of the tier regains, and the period, such as 6000/1m. Required, unless in-flight
     *     is set.
     * @param capacity Number of tokens in a full bucket of the tier, such as 8000. Default: the tokens of the rate.
     * @param inFlight Number of requests of a key that may run at the same time in the tier, such as 8. Default: the
     *     policy's.
     */
    public record Tier(
            @Nullable Rate rate,
            @Nullable Long capacity,
            @Nullable Integer inFlight) {}

    /**
     * The share of a policy's limit that is guaranteed to each key.
     *
     * @param key Parts of the key that identifies a share, as in the key of a policy, such as path-variable:tenant. A
     *     request that lacks a part has no share. Required.
     * @param rate Tokens that each share regains, and the period, such as 20/s. Required.
     * @param capacity Number of tokens in a full share, such as 20. Default: the tokens of the rate.
     * @param keys Number of keys that have a share at a time, such as 50. Their rates and capacities must add up to
     *     those of the policy at most. Required.
     */
    public record GuaranteedShare(
            List<KeyPart> key,
            @Nullable Rate rate,
            @Nullable Long capacity,
            @Name("for") @Nullable Integer keys) {

        public GuaranteedShare {
            key = requireNonNullElse(key, List.of());
        }
    }

    /**
     * The share of a policy's limit for the requests of a name.
     *
     * @param guaranteed Tokens that the share regains, and the period, such as 100/s: others can't take them. Required,
     *     unless leave is set.
     * @param capacity Number of tokens in a full guaranteed share, such as 50. Default: the tokens of the rate.
     * @param leave Part of the policy's capacity that requests of the name leave to others, such as 30%. Required, unless
     *     guaranteed is set.
     */
    public record NamedShare(
            @Nullable Rate guaranteed,
            @Nullable Long capacity,
            @Nullable Percent leave) {}

    /** A percentage from 1% to 99%. */
    public record Percent(int percent) {

        /**
         * Reads a text such as {@code 30%}.
         *
         * @throws IllegalArgumentException if the text is no whole percentage, or outside the range
         */
        public static Percent of(String text) {
            String digits = text.strip().replaceFirst("%$", "");
            if (digits.equals(text.strip()) || !digits.matches("[1-9][0-9]?")) {
                throw new IllegalArgumentException(
                        "leave must be a whole percentage from 1% to 99%, such as 30%, but was '" + text + "'");
            }
            return new Percent(Integer.parseInt(digits));
        }
    }

    /**
     * The limit of single keys or networks.
     *
     * @param keys Keys: each is one text, or a list with one text for each part of the policy's key. For the part ip a
     *     text may be a network, such as 10.0.0.0/8. Required.
     * @param rate Tokens that a bucket of these keys regains, and the period, such as 6000/1m. Required, unless the
     *     override has in-flight or a mode.
     * @param capacity Number of tokens in a full bucket of these keys, such as 8000. Default: the tokens of the rate.
     * @param inFlight Number of requests of each of these keys that may run at the same time, such as 8. Default: the
     *     policy's.
     * @param mode Mode of the policy for these keys, instead of a rate: off (no limit) or shadow (count and log
     *     denials, reject nothing). Default: enforce.
     */
    public record OverrideEntry(
            @DefaultValue List<List<Text>> keys,
            @Nullable Rate rate,
            @Nullable Long capacity,
            @Nullable Integer inFlight,
            @Nullable Mode mode) {

        /** A text that may contain commas, at which a list would be split. */
        public record Text(String text) {}
    }

    /** The longest wait. Spring would read a plain duration without a unit as milliseconds. */
    public record MaxWait(Duration duration) {

        /** Reads a wait such as {@code 2s}, or throws an {@link IllegalArgumentException}. */
        public static MaxWait of(String text) {
            return new MaxWait(ThrottlePolicy.parseMaxWait(text));
        }
    }

    /** The time of a lease. Spring would read a plain duration without a unit as milliseconds. */
    public record Lease(Duration duration) {

        /** Reads a lease such as {@code 50ms}, or throws an {@link IllegalArgumentException}. */
        public static Lease of(String text) {
            return new Lease(ThrottlePolicy.parseLease(text));
        }
    }

    /**
     * The delay of a policy's rejections.
     *
     * @param time the delay; zero for none; at most one minute, since clients and proxies time out then
     */
    public record RejectionDelay(Duration time) {

        public static final RejectionDelay NONE = new RejectionDelay(Duration.ZERO);

        /** @throws IllegalArgumentException if the time is negative or longer than one minute */
        public RejectionDelay {
            if (time.isNegative() || time.compareTo(Duration.ofMinutes(1)) > 0) {
                throw new IllegalArgumentException(
                        "rejection-delay must be between 0s and 1m, but was " + Rate.format(time));
            }
        }

        /** Parses {@code 500ms}, {@code 2s} or {@code PT2S}. A number needs a unit. */
        public static RejectionDelay of(String text) {
            return new RejectionDelay(Rate.parseDuration(text.strip()));
        }

        public boolean isNone() {
            return time.isZero();
        }

        /** Returns the delay as it is configured: {@code 2s}. */
        @Override
        public String toString() {
            return Rate.format(time);
        }
    }

    /** Returns the path of a policy, such as {@code ratelimit.policies.api}. */
    public static String property(String policy) {
        return PREFIX + ".policies." + policy;
    }
}
