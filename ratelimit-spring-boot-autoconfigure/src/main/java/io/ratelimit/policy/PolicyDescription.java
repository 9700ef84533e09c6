package io.ratelimit.policy;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.BackendKind;
import io.ratelimit.policy.RateLimitProperties.Headers;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * The properties of a policy in the form that the editors of Spring Tools describe. No code uses this type: the metadata
 * names it as the one to handle the values of {@code ratelimit.policies} as. These editors show descriptions of getters, but
 * none of record components, and complete a value only for a type that they know. The texts are those of
 * {@link RateLimitProperties.Policy}; a test compares them.
 */
abstract class PolicyDescription {

    private PolicyDescription() {}

    /** Tokens that a bucket regains, and the period, such as 600/1m, 10/s, 600/minute or 1/2s. Required. */
    public abstract String getRate();

    /** Number of tokens in a full bucket, which is the largest burst, such as 800. Default: the tokens of the rate. */
    public abstract Long getCapacity();

    /**
     * Refill of a bucket: greedy (continuously), interval (all tokens of a period at once) or calendar (all tokens of a
     * day, week or month at once, at its beginning). Default: greedy.
     */
    public abstract Refill getRefill();

    /** Time zone of the calendar, such as Europe/Berlin, with refill: calendar. Default: UTC. */
    public abstract String getZone();

    /**
     * Tokens that a request takes: a number, such as 5, or an expression over the facts of the request, such as
     * contentLength / 1024. Default: 1.
     */
    public abstract String getCost();

    /**
     * Maximum of the cost, such as 50. A larger cost is reduced to it, and a cost that fails counts as the maximum.
     * Default: none.
     */
    public abstract Long getMaxCost();

    /**
     * Source of a request's own rate and capacity: bean:NAME (a LimitResolver). It replaces the policy's limit and that
     * of the tier, but not an override. Default: none.
     */
    public abstract String getLimit();

    /**
     * Source of the actual cost, which replaces the cost when the response is complete: attribute:NAME (of the
     * request), response-header:NAME or code (an ActualCost). Default: none, so the cost is final.
     */
    public abstract String getSettle();

    /** Limits of tiers by their names, such as free and pro. A request may belong to one tier. Default: none. */
    public abstract Map<String, Tier> getTiers();

    /**
     * Source of the request's tier: role (a tier named like a role of the user), or a source that a key part can have,
     * such as header:X-Plan, bean:NAME or expression:SPEL. Default: none.
     */
    public abstract String getTier();

    /** Limits of single keys or networks, or exemptions for them. Default: none. */
    public abstract List<OverrideEntry> getOverrides();

    /**
     * Parts of the key that identifies a bucket, one or a list: ip, user, endpoint, method, session, header:NAME,
     * cookie:NAME, query:NAME, path-variable:NAME, claim:NAME (of a JWT or OAuth2 user), bean:NAME (a KeyResolver) or
     * expression:SPEL. Default: none, so all requests share one bucket.
     */
    public abstract List<String> getKey();

    /** Whether keys that differ only in case share a bucket. Default: true. */
    public abstract Boolean getIgnoreCase();

    /**
     * Treatment of a request that lacks a part of the key: client-ip (use the address instead), shared (one bucket for
     * all of them), deny (403) or skip. Default: client-ip.
     */
    public abstract MissingKey getOnMissingKey();

    /** Maximum number of buckets, such as 1000000. Beyond it, new keys share overflow buckets. Default: 100000. */
    public abstract Integer getMaxKeys();

    /**
     * Target of the policy: requests, or annotated (calls of methods whose RateLimited annotation names it). Default:
     * requests.
     */
    public abstract AppliesTo getAppliesTo();

    /**
     * Path patterns to which the policy applies, relative to the context path, such as /orders/**. Default: all paths.
     */
    public abstract List<String> getPaths();

    /** Path patterns to which the policy does not apply, such as /orders/{id}/paid. Default: none. */
    public abstract List<String> getExcludePaths();

    /** HTTP methods to which the policy applies, such as POST. GET includes HEAD. Default: all methods. */
    public abstract List<String> getMethods();

    /**
     * Expression over the facts of the request, such as !roles.contains('ADMIN'). The policy applies if it is true, or
     * if it fails. Default: none.
     */
    public abstract String getCondition();

    /**
     * Phase of the policy: before-authentication or after-authentication. A policy with a written early phase keeps its
     * tokens when a later policy rejects the request. Default: after, if the policy needs the user, if its requests may
     * wait, or if the application authenticates and the key has no ip; otherwise before.
     */
    public abstract Phase getPhase();

    /**
     * Longest wait of a request for missing tokens, such as 2s or 500ms. A policy whose requests may wait runs after
     * authentication, unless its phase is written. Default: 0s, so no request waits.
     */
    public abstract Duration getMaxWait();

    /** Maximum number of waiting requests, such as 50. Further requests are rejected at once. Default: 20. */
    public abstract Integer getQueueLimit();

    /**
     * Conditions that return the tokens of a request: authenticated (the request passed authentication with a user), or
     * statuses of the response, such as 404, 5xx, or !401 for all except 401. Default: none.
     */
    public abstract List<String> getRefundOn();

    /** Delay of the response to a rejected request, such as 2s. Occupies no thread. Default: 0s. */
    public abstract Duration getRejectionDelay();

    /** Range of the random addition to the retry time, such as 1ms-5ms. Default: none. */
    public abstract String getRetryJitter();

    /**
     * Headers that inform clients about this limit: draft-11, x-ratelimit or none. Default: the application's.
     */
    public abstract Headers getHeaders();

    /** HTTP status of a rejection, from 400 to 599, such as 503. Default: 429. */
    public abstract Integer getStatus();

    /**
     * Whether the policy is enforced: enforce, shadow (count and log denials, reject nothing) or off. Default: enforce.
     */
    public abstract Mode getMode();

    /** Location of the policy's buckets: local or redis. Default: the application's. */
    public abstract BackendKind getBackend();

    /**
     * Longest time for which an instance takes tokens from Redis ahead, to decide requests by itself, such as 50ms.
     * Default: 0s, so Redis decides each request.
     */
    public abstract Duration getLease();

    /** Decision while Redis is unavailable: local, allow or deny. Default: the application's. */
    public abstract FailureRule getOnBackendFailure();

    /** The limit of the requests that belong to a tier. */
    abstract static class Tier {

        private Tier() {}

        /** Tokens that a bucket of the tier regains, and the period, such as 6000/1m. Required. */
        public abstract String getRate();

        /** Number of tokens in a full bucket of the tier, such as 8000. Default: the tokens of the rate. */
        public abstract Long getCapacity();
    }

    /** The limit of single keys or networks. */
    abstract static class OverrideEntry {

        private OverrideEntry() {}

        /**
         * Keys: each is one text, or a list with one text for each part of the policy's key. For the part ip a text may
         * be a network, such as 10.0.0.0/8. Required.
         */
        public abstract List<List<String>> getKeys();

        /**
         * Tokens that a bucket of these keys regains, and the period, such as 6000/1m. Required, unless the override
         * has a mode.
         */
        public abstract String getRate();

        /** Number of tokens in a full bucket of these keys, such as 8000. Default: the tokens of the rate. */
        public abstract Long getCapacity();

        /**
         * Mode of the policy for these keys, instead of a rate: off (no limit) or shadow (count and log denials, reject
         * nothing). Default: enforce.
         */
        public abstract Mode getMode();
    }
}
