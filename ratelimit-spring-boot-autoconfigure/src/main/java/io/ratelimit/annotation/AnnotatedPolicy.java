package io.ratelimit.annotation;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.RequestKey;

/**
 * A policy that limits the calls of methods that name it, and no requests.
 *
 * @param policy the limit
 * @param key whose bucket, where the annotation has no key
 * @param cost the tokens of a call, where the annotation has no cost
 */
public record AnnotatedPolicy(ThrottlePolicy policy, RequestKey key, long cost) {}
